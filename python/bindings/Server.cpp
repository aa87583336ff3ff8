//===- Server.cpp - ModelServer in Python -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server.h"

#include "Errors.h"
#include "Signals.h"
#include "ToPython.h"

#include "Support/Abandon.h"
#include "Support/PrintableText.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace MLBridge::Python {

void Server::checkOpen() const {
  if (!Impl)
    raise({ErrorCode::InvalidArgument, Description + " is closed"});
  if (Fork.isForked())
    raise({ErrorCode::InvalidArgument,
           Description + " belongs to the process from which this one was "
                         "forked; listen at another name in the child"});
}

Server::Server(const nb::sequence &Listeners, nb::object OnWarning)
    : OnWarning(std::move(OnWarning)) {
  std::vector<std::unique_ptr<Listener>> Opened;
  for (nb::handle Item : Listeners) {
    auto &Given = nb::cast<ListenerInPython &>(Item);
    if (!Given.Opened)
      raise({ErrorCode::InvalidArgument,
             "this listener already belongs to a server"});
    Opened.push_back(std::move(Given.Opened));
  }
  if (Opened.empty())
    raise({ErrorCode::InvalidArgument,
           "expected an address to serve at, such as pipe:/tmp/advisor, found "
           "none"});
  Impl = ModelServer::create(std::move(Opened));
  Name = Impl->name();
  Description = "the server at " + Name;
}

/// In a forked child, leaks the copy of the server instead of closing it,
/// because the sessions and threads belong to the parent.
Server::~Server() {
  if (Fork.isForked())
    abandon(std::move(Impl));
}

void Server::close() {
  if (!Impl || Fork.isForked())
    return;
  ExclusiveUse Use(InUse, Description);
  NumAsked = 0;
  Counts.Open = 0;
  // Release this object's references to arrays. An array that Python still uses
  // keeps its memory alive.
  forget();
  for (const auto &E : Exchanges)
    E->Reply.clear();
  std::unique_ptr<ModelServer> Closing = std::move(Impl);
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
  // Subtract each wait from the timeout, so that the clock need not be read.
  Duration Left = durationOf(Timeout);
  while (true) {
    const Duration Wait = std::min<Duration>(Left, Slice);
    Sent Last;
    std::optional<Expected<Span<const ModelServer::Request>>> Next;
    {
      nb::gil_scoped_release Release;
      Last = sendReplies();
      if (!Last.isAuthorsFault())
        Next.emplace(Impl->nextBatch(Limits, Wait));
    }
    finishSend(Last);
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
      // Do not catch KeyboardInterrupt, which is not an Exception.
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

/// Releases the cached messages and arrays of all sessions.
void Server::forget() {
  for (const auto &E : Exchanges)
    E->Request = {};
  Shown.clear();
  Views.clear();
  Mistyped.clear();
}

/// Replies with an error to a request that Python cannot represent.
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
  // Ignore a failure to send this reply. The session then ends, and report()
  // reports its end.
  (void)bool(Impl->replyError(Text, Index));
}

void Server::warn(std::string_view What, const nb::object &Why) {
  if (!OnWarning.is_none())
    OnWarning(toStr(What), Why);
}

/// Warns about sessions that have ended and compilers that were refused since
/// the last call. Also warns about the replies in \p Last that could not be
/// sent.
void Server::report(const Sent &Last) {
  if (RefusalsReported != Counts.Refused) {
    // Emit one warning for each refusal. Only the reason of the last refusal is
    // known, so all warnings contain that reason.
    nb::object Why = exceptionFor(Impl->lastRefusal());
    while (RefusalsReported != Counts.Refused) {
      ++RefusalsReported;
      warn("refused a compiler", Why);
    }
  }
  // Report each end of a session once. Messages contain the session's number,
  // so a different message means a different session. Skip a message that is
  // also the failure of a reply, because the loop below reports it.
  const MLBridge::Error &End = Impl->lastSessionError();
  if (End && End.message() != LastReported) {
    LastReported = End.message();
    if (std::ranges::none_of(Last.Failures, [&](const Sent::Failed &F) {
          return F.Why.message() == End.message();
        }))
      warn("a session ended", exceptionFor(End));
  }
  for (const Sent::Failed &Failure : Last.Failures)
    if (!Failure.isAuthorsFault())
      warn(Failure.IsOver ? "a session ended" : "a reply was not sent",
           Failure.exception());
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

/// Returns the first request that waits for its reply, or an empty request.
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
           "no request waits for a reply at " + Name + "; receive one first"});
  return *Exchanges[Index];
}

/// Converts a text for a compiler to UTF-8. A lone surrogate is replaced by its
/// escape sequence, such as \udcff. The compiler thus receives the rest of the
/// text.
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
  setText(at(Index), ReplyKind::Error, readable(Message));
}

void Server::setDeferred(const nb::str &Why, std::size_t Index) {
  ExclusiveUse Use(InUse, Description);
  setText(at(Index), ReplyKind::Deferred, readable(Why));
}

void Server::setText(Exchange &E, ReplyKind Kind, std::string Text) {
  E.Reply.clear();
  E.Text = std::move(Text);
  E.Pending = Kind;
  if (Kind == ReplyKind::Deferred)
    Mistyped.erase(E.Request.Session);
}

/// Adds one output to the reply. If \p IsTaken is true, a compiler that expects
/// a single output uses this output.
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
    // AdviceType is the type that the session's first request expects, and
    // later requests may expect another type. Therefore, raise the error only
    // if no reply of this session had that type. Otherwise, send the value with
    // its own type.
    const std::uint64_t Session = E.Request.Session;
    if (E.Request.IsFirst || Mistyped.contains(Session)) {
      // Clear the set when it is full, because most of its sessions have ended.
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
  E.Pending = ReplyKind::None;
  if (Value.is_none()) {
    setText(E, ReplyKind::Deferred, "the model answered None");
    return;
  }
  E.Reply.clear();
  // Convert Python's int and float to int32 and float32, because compilers in
  // bare mode read C's int and float.
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
             "the reply is empty; return None to defer to the compiler"});
    for (auto [Key, Output] : Outputs) {
      if (!PyUnicode_Check(Key.ptr()))
        raise({ErrorCode::SchemaMismatch,
               "expected a str as the name of an output, found " +
                   nb::cast<std::string>(nb::repr(Key))});
      nb::object Backing;
      std::string_view Name = toText(Key, Backing);
      if (Name.starts_with('_'))
        raise({ErrorCode::InvalidArgument,
               "reply '" + std::string(Name) +
                   "': names that begin with an underscore are reserved "
                   "for the protocol"});
      addOutput(E, Name, Output, Outputs.size() == 1 || Name == "out");
    }
  }
  E.Pending = ReplyKind::Advice;
}

/// Sets a training message as the reply. Unlike in setReply(), reserved names
/// are allowed, and values keep their types.
void Server::setMessage(const nb::dict &Tensors) {
  ExclusiveUse Use(InUse, Description);
  Exchange &E = at(0);
  E.Pending = ReplyKind::None;
  E.Reply.clear();
  E.Reply.setNumberTypes({});
  for (auto [Key, Value] : Tensors) {
    if (!PyUnicode_Check(Key.ptr()))
      raise({ErrorCode::SchemaMismatch,
             "expected a str as the name of a tensor, found " +
                 nb::cast<std::string>(nb::repr(Key))});
    nb::object Backing;
    E.Reply.add(toText(Key, Backing), Value);
  }
  E.Pending = ReplyKind::Advice;
}

Server::Sent Server::sendReplies() {
  Sent Result;
  // Set NumAsked to zero first, so that other threads do not see these requests
  // while the GIL is released.
  for (std::size_t I = 0, N = std::exchange(NumAsked, 0); I < N; ++I) {
    Exchange &E = *Exchanges[I];
    const ReplyKind Kind = std::exchange(E.Pending, ReplyKind::None);
    MLBridge::Error Failure;
    switch (Kind) {
    case ReplyKind::None:
      break;
    case ReplyKind::Advice:
      Failure = Impl->reply(E.Index, E.Reply.features().tensors());
      break;
    case ReplyKind::Error:
      Failure = Impl->replyError(E.Text, E.Index);
      break;
    case ReplyKind::Deferred:
      Failure = Impl->replyDeferred(E.Text, E.Index);
      break;
    }
    if (Failure)
      Result.Failures.push_back({Kind, E.Request.Session, E.Request.Pid,
                                 std::move(Failure),
                                 !Impl->isOpen(E.Request.Session)});
  }
  return Result;
}

/// True if the failure is an error in the policy, so that an exception must be
/// raised. A compiler that has disconnected or does not read the reply is not
/// the policy's fault. An error or a deferral that could not be sent is not the
/// policy's fault either.
bool Server::Sent::Failed::isAuthorsFault() const {
  return Kind == ReplyKind::Advice && Why.code() != ErrorCode::PeerClosed &&
         Why.code() != ErrorCode::Timeout;
}

/// Raises the first failure that is the policy's fault. The attribute `others`
/// of the exception contains the policy's other failures. If there are no such
/// failures, the function returns.
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

/// Returns the failure as an exception that names the session.
nb::object Server::Sent::Failed::exception() const {
  std::string Number = "session " + std::to_string(Session);
  std::string Text(Why.message());
  // Add the session's number if it is missing, as in messages of a SerDes.
  if (Text.find("(" + Number + ")") == std::string::npos)
    Text =
        Number + " (process " + std::to_string(Pid) + ") got no reply: " + Text;
  nb::object Exception = exceptionFor({Why.code(), std::move(Text)});
  Exception.attr("session") = Session;
  Exception.attr("pid") = Pid;
  Exception.attr("session_ended") = IsOver;
  return Exception;
}

/// Updates the counts after replies were sent, emits warnings, and raises the
/// policy's failures. The caller must hold the GIL.
void Server::finishSend(const Sent &Last) {
  for (const auto &E : Exchanges)
    E->Reply.clear();
  Counts = Impl->statistics();
  report(Last);
  Last.raiseAuthorsFaults();
}

void Server::send() {
  checkOpen();
  ExclusiveUse Use(InUse, Description);
  Sent Last;
  {
    nb::gil_scoped_release Release;
    Last = sendReplies();
  }
  finishSend(Last);
}

void Server::measureLatencies() {
  checkOpen();
  Impl->measureLatencies();
}

std::vector<double>
Server::latencies(const std::vector<double> &Quantiles) const {
  std::vector<double> Seconds;
  if (Impl)
    for (Duration D : Impl->latencies(Quantiles))
      Seconds.push_back(std::chrono::duration<double>(D).count());
  return Seconds;
}

} // namespace MLBridge::Python
