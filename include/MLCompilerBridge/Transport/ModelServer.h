//===- ModelServer.h - The model's side of a session ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelServer: accepts compilers at its listeners and returns their requests,
/// one by one or in batches. Python's CompilerInterface classes wrap it; a
/// model written in C++ uses it directly.
/// \code
///   auto Server = ModelServer::listen("/tmp/advisor");
///   FeatureSet Reply;
///   while (auto Request = (*Server)->next(Deadline::never())) {
///     Reply.clear();
///     Reply.set("out", decide(Request->Features));
///     if (Error E = (*Server)->reply(Reply.tensors()))
///       std::cerr << E.str() << '\n'; // The compiler did not receive it.
///   }
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_MODELSERVER_H
#define MLCOMPILERBRIDGE_TRANSPORT_MODELSERVER_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/Transport/Listener.h"

#include <memory>
#include <string>
#include <vector>

namespace MLBridge {

/// The options of a ModelServer with one local listener.
struct ModelServerOptions : ListenerOptions {
  /// Also create NAME.in and NAME.out for one foreign compiler at a time, which
  /// uses BareFormat. Compilers that use this library connect to NAME.sock and
  /// choose their own format.
  bool Bare = true;
  std::string BareFormat = "bitstream";
};

/// The limits on a batch of requests. A batch holds at most one request per
/// compiler, since a compiler waits for the reply.
struct BatchLimits {
  /// The most requests in a batch.
  std::size_t MaxSize = 1;
  /// How long the first request of a batch may wait for others.
  Duration MaxDelay = Duration::zero();
};

/// Serves any number of compilers, each in its own session. A compiler that
/// dies, stalls or sends malformed messages ends only its own session, and a
/// compiler that does not read its reply delays no other. Used by one thread at
/// a time, in the process that created it: a daemon must fork before it
/// listens.
class ModelServer {
public:
  /// One request. The views are valid until the next call of next() or
  /// nextBatch().
  struct Request {
    Span<const TensorView> Features;
    /// The number of the session, counted from 1.
    std::uint64_t Session = 0;
    /// True for the first request of the session.
    bool IsFirst = false;
    /// The compiler's process; 0 if unknown.
    int Pid = 0;
    /// True for a foreign compiler on bare pipes, whose process and advice type
    /// are unknown.
    bool Bare = false;
    /// elementTypeName() of the advice that the compiler expects; empty if
    /// unknown.
    std::string_view AdviceType;
    /// If two requests of a session have equal LayoutIds, their features have
    /// the same names, types, shapes and addresses, so objects made from the
    /// views can be reused.
    struct LayoutId {
      /// How often the memory has moved.
      std::uint64_t Memory = 0;
      /// BaseSerDes::layout().
      std::uint64_t Schema = 0;
    };
    LayoutId Layout;
    /// An owner of the views' memory. The owner keeps the memory alive, but the
    /// session's next request overwrites its contents.
    std::shared_ptr<const void> Memory;
  };

  struct Statistics {
    std::uint64_t Sessions = 0; ///< Sessions begun so far.
    std::uint64_t Open = 0;     ///< Sessions open now.
    std::uint64_t Requests = 0; ///< Requests received, answered or not.
    std::uint64_t Batches = 0;  ///< Batches returned.
    std::uint64_t Refused = 0;  ///< Compilers refused.
  };

  /// Listens at \p Name: see openLocalListener().
  static Expected<std::unique_ptr<ModelServer>>
  listen(std::string Name, ModelServerOptions Options = {});
  /// Serves the compilers that connect to any of \p Listeners.
  static std::unique_ptr<ModelServer>
  create(std::vector<std::unique_ptr<Listener>> Listeners);
  virtual ~ModelServer();

  /// Waits for the next requests and returns at least one. Errors: Timeout
  /// after
  /// \p Within; System if poll(2) fails. A compiler's errors end its session
  /// and show in lastSessionError() only. Requests of the last batch without a
  /// reply are answered with an error.
  virtual Expected<Span<const Request>> nextBatch(const BatchLimits &Limits,
                                                  Duration Within) = 0;
  /// Waits for the next request of any compiler. Errors: as nextBatch().
  Expected<Request> next(Deadline Until);

  /// Answers the request at \p Index of the last batch. An error means that the
  /// compiler did not receive \p Advice; the server keeps running. If the
  /// session's format cannot express the advice, or it exceeds max-message, the
  /// compiler receives the reason instead, as by replyError(), and the session
  /// continues. The session ends if the reason cannot be sent or the compiler
  /// is gone.
  virtual Error reply(std::size_t Index, Span<const TensorView> Advice) = 0;
  /// Answers the last request that next() returned.
  Error reply(Span<const TensorView> Advice) { return reply(0, Advice); }
  /// Answers that the model failed: the compiler receives ErrorCode::Model with
  /// at most the first 4096 bytes of \p Message.
  Error replyError(std::string_view Message, std::size_t Index = 0);
  /// Leaves the decision to the compiler, which receives ErrorCode::Deferred
  /// with at most the first 4096 bytes of \p Why.
  Error replyDeferred(std::string_view Why, std::size_t Index = 0);

  /// Whether the session with number \p Session is open.
  virtual bool isOpen(std::uint64_t Session) const = 0;
  virtual Statistics statistics() const = 0;
  /// Starts measuring how long requests take.
  virtual void measureLatencies() = 0;
  /// The \p Quantiles (0 to 1) of the time from a request's receipt until its
  /// reply was sent, with a relative precision of 1/16. May be called by any
  /// thread.
  virtual std::vector<Duration>
  latencies(Span<const double> Quantiles) const = 0;
  /// Why a session last ended abnormally; success if none has.
  virtual const Error &lastSessionError() const = 0;
  /// Why a compiler was last refused; success if none has been.
  virtual const Error &lastRefusal() const = 0;
  /// The names of the listeners, separated by ", ".
  virtual const std::string &name() const = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_MODELSERVER_H
