//===- Server.cpp - ModelServer in Python -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Server: a ModelServer whose requests are dicts of arrays and whose replies
/// are Python values, with the listeners where compilers come to it. Waiting
/// never holds the GIL, and is done in slices, so that Ctrl-C is heard.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "FeatureViews.h"
#include "FromPython.h"
#include "Signals.h"
#include "ToPython.h"

#include "MLCompilerBridge/Transport/ModelServer.h"
#include "Support/Abandon.h"
#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <atomic>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <unordered_set>

namespace nb = nanobind;

namespace MLBridge::Python {

namespace {

class Server {
public:
  Server(const nb::sequence &Listeners, nb::object OnWarning);
  ~Server();
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  /// Sends the replies that are set, waits for the next request, and returns
  /// its features; None when \p Timeout seconds pass or stop() is called.
  nb::object exchange(std::optional<double> Timeout);
  /// The same for the requests that wait at the same moment: a list of dicts.
  nb::object exchangeBatch(std::size_t MaxSize, double MaxDelay,
                           std::optional<double> Timeout);

  // The answer to the request at that place of the last batch.
  void setReply(nb::handle Value, std::size_t Index);
  void setMessage(const nb::dict &Tensors);
  void setError(const nb::str &Message, std::size_t Index);
  void setDeferred(const nb::str &Why, std::size_t Index);
  /// Sends the replies that are set, without waiting for more.
  void send();

  void stop() { Stopped.store(true, std::memory_order_relaxed); }
  void close();
  bool isClosed() const { return !Listener; }

  const std::string &name() const { return Name; }
  nb::tuple client(std::size_t Index) const;
  std::uint64_t session() const { return first().Session; }
  int pid() const { return first().Pid; }
  std::string_view adviceType() const { return first().AdviceType; }
  bool bare() const { return first().Bare; }
  std::uint64_t sessions() const { return Counts.Sessions; }
  std::uint64_t open() const { return Counts.Open; }
  std::uint64_t requests() const { return Counts.Requests; }
  std::uint64_t batches() const { return Counts.Batches; }
  std::uint64_t refusedQuestions() const { return NumRefused; }
  std::uint64_t refusedCompilers() const { return Counts.Refused; }
  std::uint64_t mistyped() const { return NumMistyped; }
  void measureLatencies();
  std::vector<double> latencies(const std::vector<double> &Quantiles) const;

private:
  enum class Reply : std::uint8_t { None, Advice, Error, Deferred };

  /// A request that Python has seen, and what it is answered.
  struct Exchange {
    ModelServer::Request Request;
    /// Its place in the server's batch.
    std::size_t Index = 0;
    Reply Pending = Reply::None;
    TensorsFromPython Reply{"reply"};
    std::string Text;
  };

  /// What became of the answers.
  struct Sent {
    struct Failed {
      Reply Kind;
      std::uint64_t Session;
      int Pid;
      /// Why it could not be sent.
      MLBridge::Error Why;
      /// Whether its session is over, because the compiler could not be told.
      bool IsOver;

      bool isAuthorsFault() const;
      nb::object exception() const;
    };
    std::vector<Failed> Failures;

    bool isAuthorsFault() const {
      return std::ranges::any_of(Failures, &Failed::isAuthorsFault);
    }
    void raiseAuthorsFaults() const;
  };

  /// How long a signal may have to wait.
  static constexpr std::chrono::milliseconds Slice{100};
  static constexpr std::size_t MaxMistyped = 4096;

  /// Sends, and waits: whether there are requests.
  bool advance(const BatchLimits &Limits, std::optional<double> Timeout);
  /// Takes the requests that have a form in Python; true if there is one.
  bool take(Span<const ModelServer::Request> Requests);
  const ModelServer::Request &first() const;
  Exchange &at(std::size_t Index);
  void setText(Exchange &E, Reply Kind, std::string Text);
  void addOutput(Exchange &E, std::string_view Name, nb::handle Value,
                 bool IsTaken);
  void checkOpen() const;
  /// Without the GIL.
  Sent sendAnswers();
  void settle(const Sent &Last);
  void refuse(const ModelServer::Request &Request, std::size_t Index,
              const std::string &Why);
  void forget();
  void warn(std::string_view What, const nb::object &Why);
  void report(const Sent &Last);

  ForkDetector Fork;
  std::unique_ptr<ModelServer> Listener;
  std::string Name;
  /// For messages.
  std::string Description;
  nb::object OnWarning;
  FeatureViews Views;
  /// Of these, the first NumAsked wait for their answers; the others are kept
  /// for what they have allocated.
  std::vector<std::unique_ptr<Exchange>> Exchanges;
  std::size_t NumAsked = 0;
  /// What Python sees of them.
  std::vector<nb::dict> Shown;
  UseMark InUse;
  std::atomic<bool> Stopped = false;
  ModelServer::Statistics Counts;
  std::uint64_t NumRefused = 0;
  std::uint64_t NumMistyped = 0;
  /// Of the open sessions, those of which each answer so far could not be
  /// converted to what the session's first request wants.
  std::unordered_set<std::uint64_t> Mistyped;
  std::string LastReported;
  std::uint64_t RefusalsReported = 0;
};

} // namespace

void Server::checkOpen() const {
  if (!Listener)
    raise({ErrorCode::InvalidArgument, Description + " is closed"});
  if (Fork.isForked())
    raise({ErrorCode::InvalidArgument,
           Description + " belongs to the process from which this one was "
                         "forked; a child listens at a name of its own"});
}

Server::Server(const nb::sequence &Listeners, nb::object OnWarning)
    : OnWarning(std::move(OnWarning)) {
  std::vector<std::unique_ptr<Listener>> Opened;
  for (nb::handle Item : Listeners) {
    auto &D = nb::cast<ListenerInPython &>(Item);
    if (!D.Opened)
      raise({ErrorCode::InvalidArgument,
             "a listener belongs to one server only"});
    Opened.push_back(std::move(D.Opened));
  }
  if (Opened.empty())
    raise({ErrorCode::InvalidArgument,
           "a server needs a place, such as pipe:/tmp/advisor"});
  Listener = ModelServer::create(std::move(Opened));
  Name = Listener->name();
  Description = "the server at " + Name;
}

/// A forked child abandons its copy: the sessions and threads are its parent's.
Server::~Server() {
  if (Fork.isForked())
    abandon(std::move(Listener));
}

void Server::close() {
  if (!Listener || Fork.isForked())
    return;
  ExclusiveUse Use(InUse, Description);
  NumAsked = 0;
  Counts.Open = 0;
  // The arrays that were handed out keep what they need.
  forget();
  for (const auto &E : Exchanges)
    E->Reply.clear();
  std::unique_ptr<ModelServer> Closing = std::move(Listener);
  nb::gil_scoped_release Release;
  Closing.reset();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

nb::object Server::exchange(std::optional<double> Timeout) {
  if (!advance(BatchLimits(), Timeout))
    return nb::none();
  return std::move(Shown.front());
}

nb::object Server::exchangeBatch(std::size_t MaxSize, double MaxDelay,
                                 std::optional<double> Timeout) {
  if (!advance({MaxSize, durationOf(MaxDelay)}, Timeout))
    return nb::none();
  nb::list Batch;
  for (nb::dict &Features : Shown)
    Batch.append(std::move(Features));
  return Batch;
}

bool Server::advance(const BatchLimits &Limits, std::optional<double> Timeout) {
  checkOpen();
  ExclusiveUse Use(InUse, Description);
  Signals Heard;
  // Counted down by what was waited, which spares looks at the clock.
  Duration Left = durationOf(Timeout);
  while (true) {
    const Duration Wait = std::min<Duration>(Left, Slice);
    Sent Last;
    std::optional<Expected<Span<const ModelServer::Request>>> Next;
    {
      nb::gil_scoped_release Release;
      Last = sendAnswers();
      if (!Last.isAuthorsFault())
        Next.emplace(Listener->nextBatch(Limits, Wait));
    }
    settle(Last);
    Heard.rethrow();
    if (*Next) {
      if (take(**Next))
        return true;
    } else if (Next->code() == ErrorCode::Timeout) {
      if (Left != Duration::max())
        Left -= Wait;
    } else {
      raise(Next->takeError());
    }
    if (Counts.Open == 0)
      forget();
    if (Stopped.load(std::memory_order_relaxed) || Left == Duration::zero())
      return false;
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  }
}

bool Server::take(Span<const ModelServer::Request> Requests) {
  Shown.clear();
  for (std::size_t I = 0; I < Requests.size(); ++I) {
    try {
      Shown.push_back(Views.dictFor(Requests[I]));
    } catch (const nb::python_error &E) {
      // Ctrl-C is no Exception.
      if (!E.matches(PyExc_Exception))
        throw;
      refuse(Requests[I], I, nb::cast<std::string>(nb::repr(E.value())));
      continue;
    }
    if (NumAsked == Exchanges.size())
      Exchanges.push_back(std::make_unique<Exchange>());
    Exchange &E = *Exchanges[NumAsked++];
    E.Request = Requests[I];
    E.Index = I;
  }
  return NumAsked != 0;
}

/// Lets go of the messages of sessions that are over.
void Server::forget() {
  for (const auto &E : Exchanges)
    E->Request = {};
  Shown.clear();
  Views.clear();
  Mistyped.clear();
}

/// Answers a request that has no form in Python with an error.
void Server::refuse(const ModelServer::Request &Request, std::size_t Index,
                    const std::string &Why) {
  ++NumRefused;
  std::string Text = "the features cannot be shown in Python: " +
                     printable(Why, /*MaxBytes=*/1000);
  warn("a request was refused",
       exceptionFor({ErrorCode::Unsupported,
                     "session " + std::to_string(Request.Session) +
                         " (process " + std::to_string(Request.Pid) +
                         "): " + Text}));
  nb::gil_scoped_release Release;
  // One that cannot be told is gone, which shows as the end of its session.
  (void)bool(Listener->replyError(Text, Index));
}

void Server::warn(std::string_view What, const nb::object &Why) {
  if (!OnWarning.is_none())
    OnWarning(toStr(What), Why);
}

/// Tells why sessions have ended and compilers were refused since the last
/// call; \p Last is what became of the last answers.
void Server::report(const Sent &Last) {
  if (RefusalsReported != Counts.Refused) {
    // Each is told of, since each is counted; those of one call for the reason
    // of the last.
    nb::object Why = exceptionFor(Listener->lastRefusal());
    while (RefusalsReported != Counts.Refused) {
      ++RefusalsReported;
      warn("refused a compiler", Why);
    }
  }
  // The server's messages name the session, so that each is told once. An
  // answer's failure may be one of them, and is told by itself.
  const MLBridge::Error &End = Listener->lastSessionError();
  if (End && End.message() != LastReported) {
    LastReported = End.message();
    if (std::ranges::none_of(Last.Failures, [&](const Sent::Failed &F) {
          return F.Why.message() == End.message();
        }))
      warn("a session ended", exceptionFor(End));
  }
  for (const Sent::Failed &Failure : Last.Failures)
    if (!Failure.isAuthorsFault())
      warn(Failure.IsOver ? "a session ended" : "an answer was not sent",
           Failure.exception());
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

/// The first request at hand, or none.
const ModelServer::Request &Server::first() const {
  static const ModelServer::Request None;
  return NumAsked == 0 ? None : Exchanges.front()->Request;
}

nb::tuple Server::client(std::size_t Index) const {
  if (Index >= NumAsked)
    return nb::make_tuple(0, 0);
  const ModelServer::Request &Q = Exchanges[Index]->Request;
  return nb::make_tuple(Q.Session, Q.Pid);
}

Server::Exchange &Server::at(std::size_t Index) {
  if (Index >= NumAsked)
    raise({ErrorCode::InvalidArgument,
           "there is no request to answer at " + Name + "; receive one first"});
  return *Exchanges[Index];
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

void Server::setError(const nb::str &Message, std::size_t Index) {
  ExclusiveUse Use(InUse, Description);
  setText(at(Index), Reply::Error, readable(Message));
}

void Server::setDeferred(const nb::str &Why, std::size_t Index) {
  ExclusiveUse Use(InUse, Description);
  setText(at(Index), Reply::Deferred, readable(Why));
}

void Server::setText(Exchange &E, Reply Kind, std::string Text) {
  E.Reply.clear();
  E.Text = std::move(Text);
  E.Pending = Kind;
  if (Kind == Reply::Deferred)
    Mistyped.erase(E.Request.Session);
}

/// Adds one output of the reply; \p IsTaken where it is the one that a compiler
/// takes which wants one only.
void Server::addOutput(Exchange &E, std::string_view Name, nb::handle Value,
                       bool IsTaken) {
  std::optional<ElementType> Wanted;
  if (IsTaken)
    Wanted = parseElementType(E.Request.AdviceType);
  try {
    E.Reply.add(Name, Value, Wanted);
  } catch (nb::python_error &Failure) {
    if (!Wanted || !Failure.matches(PyExc_TypeError))
      throw;
    // The compiler has said what its first request wants, and may want another
    // type later. A policy that has answered none in that type is at fault.
    const std::uint64_t Session = E.Request.Session;
    if (E.Request.IsFirst || Mistyped.contains(Session)) {
      // Most of so many have ended.
      if (Mistyped.size() >= MaxMistyped)
        Mistyped.clear();
      Mistyped.insert(Session);
      throw;
    }
    E.Reply.add(Name, Value);
    ++NumMistyped;
    return;
  }
  if (Wanted && !Mistyped.empty())
    Mistyped.erase(E.Request.Session);
}

void Server::setReply(nb::handle Value, std::size_t Index) {
  ExclusiveUse Use(InUse, Description);
  Exchange &E = at(Index);
  E.Pending = Reply::None;
  if (Value.is_none()) {
    setText(E, Reply::Deferred, "the model answered None");
    return;
  }
  E.Reply.clear();
  // Foreign compilers read Python's numbers as the C types int and float.
  TensorsFromPython::NumberTypes Numbers;
  if (E.Request.Bare)
    Numbers = {ElementType::Int32, ElementType::Float};
  E.Reply.setNumberTypes(Numbers);

  if (!PyDict_Check(Value.ptr())) {
    addOutput(E, "out", Value, /*IsTaken=*/true);
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
      addOutput(E, Name, Output, Outputs.size() == 1 || Name == "out");
    }
  }
  E.Pending = Reply::Advice;
}

/// A message of training, which takes the place of a reply. Its names are the
/// caller's affair, and nobody has said what types are wanted.
void Server::setMessage(const nb::dict &Tensors) {
  ExclusiveUse Use(InUse, Description);
  Exchange &E = at(0);
  E.Pending = Reply::None;
  E.Reply.clear();
  E.Reply.setNumberTypes({});
  for (auto [Key, Value] : Tensors) {
    if (!PyUnicode_Check(Key.ptr()))
      raise({ErrorCode::SchemaMismatch,
             "the names of tensors are str, found " +
                 nb::cast<std::string>(nb::repr(Key))});
    nb::object Backing;
    E.Reply.add(toText(Key, Backing), Value);
  }
  E.Pending = Reply::Advice;
}

Server::Sent Server::sendAnswers() {
  Sent Result;
  // Another thread may look; what it would see is the server's no more.
  for (std::size_t I = 0, N = std::exchange(NumAsked, 0); I < N; ++I) {
    Exchange &E = *Exchanges[I];
    const Reply Kind = std::exchange(E.Pending, Reply::None);
    MLBridge::Error Failure;
    switch (Kind) {
    case Reply::None:
      break;
    case Reply::Advice:
      Failure = Listener->reply(E.Index, E.Reply.features().tensors());
      break;
    case Reply::Error:
      Failure = Listener->replyError(E.Text, E.Index);
      break;
    case Reply::Deferred:
      Failure = Listener->replyDeferred(E.Text, E.Index);
      break;
    }
    if (Failure)
      Result.Failures.push_back({Kind, E.Request.Session, E.Request.Pid,
                                 std::move(Failure),
                                 !Listener->isOpen(E.Request.Session)});
  }
  return Result;
}

/// Whether the author of the answer has to know. A compiler that has left is no
/// affair of the model's, nor is a bare one that cannot be told of a failure.
bool Server::Sent::Failed::isAuthorsFault() const {
  return Kind == Reply::Advice && Why.code() != ErrorCode::PeerClosed &&
         Why.code() != ErrorCode::Timeout;
}

/// Raises the first one, which has the others, if there is one.
void Server::Sent::raiseAuthorsFaults() const {
  nb::object First;
  nb::list Others;
  for (const Failed &Failure : Failures) {
    if (!Failure.isAuthorsFault())
      continue;
    if (!First.is_valid())
      First = Failure.exception();
    else
      Others.append(Failure.exception());
  }
  if (!First.is_valid())
    return;
  First.attr("others") = nb::tuple(Others);
  raise(First);
}

/// The failure, and whose session it was.
nb::object Server::Sent::Failed::exception() const {
  std::string Number = "session " + std::to_string(Session);
  std::string Text(Why.message());
  // The codec does not know who reads.
  if (Text.find("(" + Number + ")") == std::string::npos)
    Text = Number + " (process " + std::to_string(Pid) +
           ") was not answered: " + Text;
  nb::object Exception = exceptionFor({Why.code(), std::move(Text)});
  Exception.attr("session") = Session;
  Exception.attr("pid") = Pid;
  Exception.attr("session_ended") = IsOver;
  return Exception;
}

/// What is to be done after a send, with the GIL.
void Server::settle(const Sent &Last) {
  for (const auto &E : Exchanges)
    E->Reply.clear();
  Counts = Listener->statistics();
  report(Last);
  Last.raiseAuthorsFaults();
}

void Server::send() {
  checkOpen();
  ExclusiveUse Use(InUse, Description);
  Sent Last;
  {
    nb::gil_scoped_release Release;
    Last = sendAnswers();
  }
  settle(Last);
}

void Server::measureLatencies() {
  checkOpen();
  Listener->measureLatencies();
}

std::vector<double>
Server::latencies(const std::vector<double> &Quantiles) const {
  std::vector<double> Seconds;
  if (Listener)
    for (Duration D : Listener->latencies(Quantiles))
      Seconds.push_back(std::chrono::duration<double>(D).count());
  return Seconds;
}

//===----------------------------------------------------------------------===//
// The binding
//===----------------------------------------------------------------------===//

void bindServer(nb::module_ &M) {
  nb::class_<Server>(M, "Server",
                     "The model's end of any number of sessions. Used by one "
                     "thread at a time, but for stop() and latencies().")
      .def(
          nb::init<const nb::sequence &, nb::object>(), nb::arg("listeners"),
          nb::kw_only(), nb::arg("on_warning").none(),
          nb::sig("def __init__(self, listeners: "
                  "collections.abc.Sequence[Listener], *, on_warning: "
                  "collections.abc.Callable[[str, Exception], object] | None) "
                  "-> None"),
          "Serves those who come to the listeners. What befell a compiler, and "
          "why, is told to on_warning.")
      .def("exchange", &Server::exchange,
           nb::arg("timeout").none() = nb::none(),
           nb::sig("def exchange(self, timeout: float | None = None) -> "
                   "dict[str, typing.Any] | None"),
           "Sends the replies that are set, if any, and waits for the next "
           "request. Returns its features by name, or None when timeout "
           "seconds have passed or stop() was called. An exception with a "
           "`session` is a reply that could not be sent; `others` has the rest "
           "of its batch.")
      .def("exchange_batch", &Server::exchangeBatch, nb::arg("max_size"),
           nb::arg("max_delay"), nb::arg("timeout").none() = nb::none(),
           nb::sig("def exchange_batch(self, max_size: int, max_delay: float, "
                   "timeout: float | None = None) -> list[dict[str, "
                   "typing.Any]] | None"),
           "The same for the requests that wait at the same moment, at most "
           "one a compiler; the first of them may wait max_delay seconds for "
           "others.")
      .def(
          "set_reply", &Server::setReply, nb::arg("value").none(),
          nb::arg("index") = 0,
          nb::sig("def set_reply(self, value: object, index: int = 0) -> None"),
          "The answer to the request at hand, or to the one at that index of "
          "the batch; None defers. Arrays are not copied before they are "
          "sent.")
      .def("set_message", &Server::setMessage, nb::arg("tensors"),
           nb::sig("def set_message(self, tensors: dict[str, typing.Any]) -> "
                   "None"),
           "A message of training, in place of an answer: names may begin with "
           "an underscore.")
      .def("set_error", &Server::setError, nb::arg("message"),
           nb::arg("index") = 0, "The answer that the model failed.")
      .def("set_deferred", &Server::setDeferred, nb::arg("why"),
           nb::arg("index") = 0,
           "The answer that leaves the decision to the compiler.")
      .def("send", &Server::send,
           "Sends the replies that are set, without waiting for a request.")
      .def("stop", &Server::stop,
           "Makes exchange() return None soon. May be called by any thread.")
      .def("close", &Server::close,
           "Ends all sessions and removes the server's files.")
      .def_prop_ro("closed", &Server::isClosed)
      .def_prop_ro(
          "name", [](const Server &S) { return toStr(S.name()); },
          nb::sig("def name(self) -> str"))
      .def("client", &Server::client, nb::arg("index"),
           nb::sig("def client(self, index: int) -> tuple[int, int]"),
           "The session and the process behind a request of the batch.")
      .def_prop_ro("session", &Server::session,
                   "Which compiler asks, counted from 1; 0 when none does.")
      .def_prop_ro("pid", &Server::pid, "Its process; 0 for a bare compiler.")
      .def_prop_ro("advice_type", &Server::adviceType,
                   "The element type that its first request wants, as "
                   "TensorSpec spells it; empty when it did not say.")
      .def_prop_ro("bare", &Server::bare,
                   "Whether it is a foreign compiler on bare pipes.")
      .def_prop_ro("sessions", &Server::sessions, "Compilers met so far.")
      .def_prop_ro("open", &Server::open, "Compilers that are here now.")
      .def_prop_ro("requests", &Server::requests, "Requests so far.")
      .def_prop_ro("batches", &Server::batches,
                   "In how many batches they came.")
      .def_prop_ro("refused_compilers", &Server::refusedCompilers,
                   "Compilers that got no session.")
      .def_prop_ro("refused_requests", &Server::refusedQuestions,
                   "Requests that have no form in Python, which were answered "
                   "with an error.")
      .def_prop_ro("mistyped", &Server::mistyped,
                   "Answers of another type than their compilers' first "
                   "requests want.")
      .def("measure_latencies", &Server::measureLatencies,
           "From now on, notes how long requests take.")
      .def("latencies", &Server::latencies, nb::arg("quantiles"),
           nb::sig("def latencies(self, quantiles: "
                   "collections.abc.Sequence[float]) -> list[float]"),
           "Seconds from a request's arrival until its answer is on the way: "
           "the values below which each of the quantiles (0 to 1) lies. May be "
           "called by any thread.");
}

} // namespace MLBridge::Python
