//===- Server.cpp - ModelServer in Python -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Server: a ModelServer whose questions are dicts of arrays and whose replies
/// are Python values. Waiting never holds the GIL, and is done in slices, so
/// that Ctrl-C is heard.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "FeatureViews.h"
#include "FromPython.h"
#include "ToPython.h"

#include "MLCompilerBridge/ModelServer.h"
#include "MLCompilerBridge/ModelSpec.h"

#include <atomic>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;

namespace MLBridge::Python {

namespace {

class Server {
public:
  Server(std::string Name, ModelServerOptions Options, nb::object OnWarning);

  /// Sends the reply that is set, waits for the next question, and returns its
  /// features; None when \p Timeout seconds pass or stop() is called.
  nb::object exchange(std::optional<double> Timeout);

  void setReply(nb::handle Value);
  void setError(const nb::str &Message);
  void setDeferred(const nb::str &Why);
  /// Sends the reply that is set, without waiting for more.
  void send();

  void stop() { Stopped.store(true, std::memory_order_relaxed); }
  void close();
  bool isClosed() const { return !Listener; }

  const std::string &name() const { return Name; }
  std::uint64_t session() const { return Asked ? Question.Session : 0; }
  int pid() const { return Asked ? Question.Pid : 0; }
  std::string_view adviceType() const {
    return Asked ? Question.AdviceType : std::string_view();
  }
  bool bare() const { return Asked && Question.Bare; }
  std::uint64_t sessions() const { return Counts.Sessions; }
  std::uint64_t open() const { return Counts.Open; }
  std::uint64_t questions() const { return Counts.Questions; }

private:
  enum class Answer : std::uint8_t { None, Advice, Error, Deferred };

  /// What became of an answer.
  struct Sent {
    Answer Kind = Answer::None;
    std::uint64_t Session = 0;
    int Pid = 0;
    /// Why it could not be sent; that session is over.
    MLBridge::Error Failure;

    bool isAuthorsFault() const;
    nb::object exception() const;
  };

  /// How long a signal may have to wait.
  static constexpr std::chrono::milliseconds Slice{100};

  void setText(Answer Kind, std::string Text);
  void addOutput(std::string_view Name, nb::handle Value, bool IsTaken);
  void checkOpen() const;
  void checkAsked() const;
  /// Without the GIL. Success when there is nothing to send.
  Sent sendAnswer();
  void settle(const Sent &Last);
  void refuse(const std::string &Why);
  void forget();
  void warn(std::string_view What, const nb::object &Why);
  void report(const Sent &Last);

  std::string Name;
  /// For messages.
  std::string Description = "the server at " + Name;
  std::unique_ptr<ModelServer> Listener;
  nb::object OnWarning;
  FeatureViews Views;
  TensorsFromPython Reply{"reply"};
  std::string ReplyText;
  Answer Pending = Answer::None;
  ModelServer::Question Question;
  /// Whether Question waits for its answer.
  bool Asked = false;
  bool InUse = false;
  std::atomic<bool> Stopped = false;
  ModelServer::Statistics Counts;
  std::string LastReported;
};

} // namespace

void Server::checkOpen() const {
  if (!Listener)
    raise({ErrorCode::InvalidArgument, Description + " is closed"});
}

Server::Server(std::string Name, ModelServerOptions Options,
               nb::object OnWarning)
    : Name(Name), Listener(valueOrRaise(ModelServer::listen(
                      std::move(Name), std::move(Options)))),
      OnWarning(std::move(OnWarning)) {}

void Server::close() {
  if (!Listener)
    return;
  ExclusiveUse Use(InUse, Description);
  Asked = false;
  Counts.Open = 0;
  // The arrays that were handed out keep what they need.
  forget();
  Reply.clear();
  std::unique_ptr<ModelServer> Closing = std::move(Listener);
  nb::gil_scoped_release Release;
  Closing.reset();
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

nb::object Server::exchange(std::optional<double> Timeout) {
  checkOpen();
  ExclusiveUse Use(InUse, Description);
  Deadline Until = Deadline::in(durationOf(Timeout));
  while (true) {
    Sent Last;
    std::optional<Expected<ModelServer::Question>> Next;
    // Another thread may look; what it would see is the server's no more.
    Asked = false;
    {
      nb::gil_scoped_release Release;
      Last = sendAnswer();
      if (!Last.isAuthorsFault())
        Next.emplace(Listener->next(Until.orEarlier(Deadline::in(Slice))));
    }
    Asked = Next && *Next;
    if (Asked)
      Question = std::move(**Next);
    settle(Last);
    if (Asked) {
      try {
        return Views.dictFor(Question);
      } catch (const nb::python_error &E) {
        // Ctrl-C is no Exception.
        if (!E.matches(PyExc_Exception))
          throw;
        refuse(nb::cast<std::string>(nb::repr(E.value())));
      }
    } else if (Next->code() != ErrorCode::Timeout) {
      raise(Next->takeError());
    }
    if (Counts.Open == 0)
      forget();
    if (Stopped.load(std::memory_order_relaxed) || Until.expired())
      return nb::none();
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  }
}

/// Lets go of the messages of sessions that are over.
void Server::forget() {
  Question = {};
  Views = {};
}

/// Answers the question at hand, which has no form in Python, with an error.
void Server::refuse(const std::string &Why) {
  std::string Text = "the features cannot be shown in Python: " + Why;
  warn("a question was refused",
       exceptionFor({ErrorCode::Unsupported,
                     "session " + std::to_string(Question.Session) +
                         " (process " + std::to_string(Question.Pid) +
                         "): " + Text}));
  setText(Answer::Error, std::move(Text));
  Sent Last;
  Asked = false;
  {
    nb::gil_scoped_release Release;
    Last = sendAnswer();
  }
  settle(Last);
}

void Server::warn(std::string_view What, const nb::object &Why) {
  if (!OnWarning.is_none())
    OnWarning(toStr(What), Why);
}

/// Tells why sessions have ended since the last call; \p Last is what became of
/// the last answer.
void Server::report(const Sent &Last) {
  // The server's messages name the session, so that each is told once. An
  // answer's failure is one of them, and is told by itself or raised.
  MLBridge::Error End = Listener->lastSessionError();
  if (End && End.message() != LastReported) {
    LastReported = End.message();
    if (End.message() != Last.Failure.message())
      warn("a session ended", exceptionFor(End));
  }
  if (Last.Failure && !Last.isAuthorsFault())
    warn("a session ended", Last.exception());
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

void Server::checkAsked() const {
  if (!Asked)
    raise({ErrorCode::InvalidArgument, "there is no question to answer at " +
                                           Name + "; receive one first"});
}

/// A text for a compiler. Half a character is spelt out (\udcff), since half
/// an explanation is better than none.
static std::string readable(const nb::str &Text) {
  nb::object Bytes = nb::steal(
      PyUnicode_AsEncodedString(Text.ptr(), "utf-8", "backslashreplace"));
  if (!Bytes.is_valid())
    throw nb::python_error();
  return {PyBytes_AS_STRING(Bytes.ptr()),
          static_cast<std::size_t>(PyBytes_GET_SIZE(Bytes.ptr()))};
}

void Server::setError(const nb::str &Message) {
  ExclusiveUse Use(InUse, Description);
  setText(Answer::Error, readable(Message));
}

void Server::setDeferred(const nb::str &Why) {
  ExclusiveUse Use(InUse, Description);
  setText(Answer::Deferred, readable(Why));
}

void Server::setText(Answer Kind, std::string Text) {
  checkAsked();
  Reply.clear();
  ReplyText = std::move(Text);
  Pending = Kind;
}

/// Adds one output of the reply; \p IsTaken where it is the one that a compiler
/// takes which wants one only.
void Server::addOutput(std::string_view Name, nb::handle Value, bool IsTaken) {
  std::optional<ElementType> Wanted;
  if (IsTaken)
    Wanted = parseElementType(Question.AdviceType);
  try {
    Reply.add(Name, Value, Wanted);
  } catch (nb::python_error &E) {
    // The compiler has said what its first question wants. Of a later one it
    // is a guess only, and the compiler itself is who knows.
    if (!Wanted || Views.wasFirstOfSession() || !E.matches(PyExc_TypeError))
      throw;
    Reply.add(Name, Value);
  }
}

void Server::setReply(nb::handle Value) {
  ExclusiveUse Use(InUse, Description);
  checkAsked();
  Pending = Answer::None;
  if (Value.is_none()) {
    setText(Answer::Deferred, "the model answered None");
    return;
  }
  Reply.clear();
  // Foreign compilers read Python's numbers as the C types int and float.
  TensorsFromPython::NumberTypes Numbers;
  if (Question.Bare)
    Numbers = {ElementType::Int32, ElementType::Float};
  Reply.setNumberTypes(Numbers);

  if (!PyDict_Check(Value.ptr())) {
    addOutput("out", Value, /*IsTaken=*/true);
  } else {
    nb::dict Outputs = nb::borrow<nb::dict>(Value);
    if (PyDict_Size(Value.ptr()) == 0)
      raise({ErrorCode::InvalidArgument,
             "an empty reply; None defers to the compiler"});
    for (auto [Key, Output] : Outputs) {
      if (!PyUnicode_Check(Key.ptr()))
        raise({ErrorCode::SchemaMismatch,
               "the names of a reply's outputs are str, found " +
                   nb::cast<std::string>(nb::repr(Key))});
      nb::object Backing;
      std::string_view Name = toText(Key, Backing);
      if (Name.starts_with('_'))
        raise({ErrorCode::InvalidArgument,
               "reply '" + std::string(Name) +
                   "': names that begin with an underscore are the "
                   "protocol's own"});
      addOutput(Name, Output, Outputs.size() == 1 || Name == "out");
    }
  }
  Pending = Answer::Advice;
}

Server::Sent Server::sendAnswer() {
  Sent Result{std::exchange(Pending, Answer::None), Question.Session,
              Question.Pid, MLBridge::Error::success()};
  switch (Result.Kind) {
  case Answer::None:
    break;
  case Answer::Advice:
    Result.Failure = Listener->reply(Reply.features().tensors());
    break;
  case Answer::Error:
    Result.Failure = Listener->replyError(ReplyText);
    break;
  case Answer::Deferred:
    Result.Failure = Listener->replyDeferred(ReplyText);
    break;
  }
  return Result;
}

/// Whether the one who made the answer has to know. That a compiler has left is
/// no affair of the model's, nor is that a bare one has no ear for reasons.
bool Server::Sent::isAuthorsFault() const {
  return Kind == Answer::Advice &&
         (Failure.code() == ErrorCode::SchemaMismatch ||
          Failure.code() == ErrorCode::InvalidArgument ||
          Failure.code() == ErrorCode::Unsupported);
}

/// The failure, and whose session it has ended.
nb::object Server::Sent::exception() const {
  std::string Number = "session " + std::to_string(Session);
  std::string Text(Failure.message());
  // The codec does not know who reads.
  if (Text.find("(" + Number + ")") == std::string::npos)
    Text = Number + " (process " + std::to_string(Pid) +
           ") was not answered: " + Text;
  nb::object Exception = exceptionFor({Failure.code(), std::move(Text)});
  Exception.attr("session") = Session;
  Exception.attr("pid") = Pid;
  return Exception;
}

/// What is to be done after a send, with the GIL.
void Server::settle(const Sent &Last) {
  Reply.clear();
  Counts = Listener->statistics();
  report(Last);
  if (Last.isAuthorsFault())
    raise(Last.exception());
}

void Server::send() {
  checkOpen();
  ExclusiveUse Use(InUse, Description);
  Sent Last;
  Asked = false;
  {
    nb::gil_scoped_release Release;
    Last = sendAnswer();
  }
  settle(Last);
}

//===----------------------------------------------------------------------===//
// The binding
//===----------------------------------------------------------------------===//

static nb::tuple serverSpec(std::string_view Text) {
  ModelSpec Spec = valueOrRaise(ModelSpec::parse(Text));
  const bool IsPipe = Spec.Scheme == "pipe";
  if (!IsPipe && Spec.Scheme != "shm")
    raise({ErrorCode::Unsupported,
           "a model is served at pipe:NAME or shm:NAME, not at '" +
               std::string(Text) + "'"});
  // Foreign compilers, whom the first two are for, know pipes only.
  const std::string_view Known[] = {"serdes", "bare", "max-message"};
  if (Error E = Spec.checkOptions(Span(Known).subspan(IsPipe ? 0 : 2)))
    raise(E);
  std::string_view Bare = Spec.option("bare", IsPipe ? "yes" : "no");
  if (Bare != "yes" && Bare != "no")
    raise({ErrorCode::InvalidArgument,
           "option 'bare' is yes or no, found '" + std::string(Bare) + "'"});
  std::size_t MaxMessage =
      valueOrRaise(Spec.bytes("max-message", TransportOptions().MaxMessage));
  return nb::make_tuple(toStr(Spec.Path),
                        toStr(Spec.option("serdes", "bitstream")),
                        Bare == "yes", MaxMessage);
}

void bindServer(nb::module_ &M) {
  M.def("server_spec", serverSpec, nb::arg("spec"),
        nb::sig("def server_spec(spec: str) -> tuple[str, str, bool, int]"),
        "The spec of a place to serve at: name, SerDes of bare compilers, "
        "whether those are welcome, longest message in bytes.");

  nb::class_<Server>(M, "Server",
                     "The model's end of any number of sessions. Used by one "
                     "thread at a time, but for stop().")
      .def(
          "__init__",
          [](Server *Self, std::string Name, bool Bare, std::string BareFormat,
             std::size_t MaxMessage, double PeerTimeout, nb::object OnWarning) {
            ModelServerOptions Options;
            Options.Bare = Bare;
            Options.BareFormat = std::move(BareFormat);
            Options.MaxMessage = MaxMessage;
            Options.PeerTimeout = durationOf(PeerTimeout);
            new (Self) Server(std::move(Name), std::move(Options),
                              std::move(OnWarning));
          },
          nb::arg("name"), nb::kw_only(), nb::arg("bare"),
          nb::arg("bare_format"), nb::arg("max_message"),
          nb::arg("peer_timeout"), nb::arg("on_warning").none(),
          nb::sig("def __init__(self, name: str, *, bare: bool, bare_format: "
                  "str, max_message: int, peer_timeout: float, on_warning: "
                  "collections.abc.Callable[[str, Exception], object] | None) "
                  "-> None"),
          "Listens at NAME.sock and, with bare, at NAME.in and NAME.out. What "
          "befell a compiler, and why, is told to on_warning.")
      .def("exchange", &Server::exchange,
           nb::arg("timeout").none() = nb::none(),
           nb::sig("def exchange(self, timeout: float | None = None) -> "
                   "dict[str, typing.Any] | None"),
           "Sends the reply that is set, if any, and waits for the next "
           "question. Returns its features by name, or None when timeout "
           "seconds have passed or stop() was called. Of what it raises, only "
           "a reply that cannot be sent has a session.")
      .def("set_reply", &Server::setReply, nb::arg("value").none(),
           nb::sig("def set_reply(self, value: object) -> None"),
           "The answer to the question at hand; None defers. Arrays are not "
           "copied before they are sent.")
      .def("set_error", &Server::setError, nb::arg("message"),
           "The answer that the model failed.")
      .def("set_deferred", &Server::setDeferred, nb::arg("why"),
           "The answer that leaves the decision to the compiler.")
      .def("send", &Server::send,
           "Sends the reply that is set, without waiting for a question.")
      .def("stop", &Server::stop,
           "Makes exchange() return None soon. May be called by any thread.")
      .def("close", &Server::close,
           "Ends all sessions and removes the server's files.")
      .def_prop_ro("closed", &Server::isClosed)
      .def_prop_ro("name", &Server::name)
      .def_prop_ro("session", &Server::session,
                   "Which compiler asks, counted from 1; 0 when none does.")
      .def_prop_ro("pid", &Server::pid, "Its process; 0 for a bare compiler.")
      .def_prop_ro("advice_type", &Server::adviceType,
                   "The element type that its first question wants, as "
                   "TensorSpec spells it; empty when it did not say.")
      .def_prop_ro("bare", &Server::bare,
                   "Whether it is a foreign compiler on bare pipes.")
      .def_prop_ro("sessions", &Server::sessions, "Compilers met so far.")
      .def_prop_ro("open", &Server::open, "Compilers that are here now.")
      .def_prop_ro("questions", &Server::questions, "Questions so far.");
}

} // namespace MLBridge::Python
