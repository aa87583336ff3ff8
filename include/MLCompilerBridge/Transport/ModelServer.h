//===- ModelServer.h - Serves compilers' requests ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ModelServer, which accepts compilers at its listeners and returns
/// their requests, one by one or in batches. The CompilerInterface classes in
/// Python wrap this class. A model written in C++ uses it directly:
/// \code
///   auto Server = ModelServer::listen("/tmp/advisor");
///   FeatureSet Reply;
///   while (auto Request = (*Server)->next(Deadline::never())) {
///     Reply.clear();
///     Reply.set("out", decide(Request->Features));
///     if (Error E = (*Server)->reply(Reply.tensors()))
///       std::cerr << E.str() << '\n'; // The compiler got no reply.
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
  /// If true, the server also creates the FIFOs NAME.in and NAME.out. One
  /// foreign compiler at a time can use them, with the SerDes BareFormat.
  /// Compilers that use this library connect to NAME.sock and select a SerDes.
  bool Bare = true;
  std::string BareFormat = "bitstream";
};

/// The limits on a batch of requests. A batch contains at most one request from
/// each compiler, because a compiler waits for the reply before it sends the
/// next request.
struct BatchLimits {
  std::size_t MaxSize = 1;
  /// The maximum time that the first request of a batch waits for other
  /// requests.
  Duration MaxDelay = Duration::zero();
};

/// Serves any number of compilers, each in a separate session. If a compiler
/// dies, stalls or sends malformed messages, only its session ends. A compiler
/// that does not read its reply does not delay other compilers. Only one thread
/// at a time may use a server. Only the process that created a server may use
/// it, so a daemon must fork before it listens.
class ModelServer {
public:
  /// One request from a compiler. The views are valid until the next call of
  /// next() or nextBatch().
  struct Request {
    Span<const TensorView> Features;
    /// The number of the session. The first session has number 1.
    std::uint64_t Session = 0;
    /// True for the first request of the session.
    bool IsFirst = false;
    /// The ID of the compiler's process, or 0 if it is unknown.
    int Pid = 0;
    /// True for a foreign compiler, which uses pipes without a handshake. Pid
    /// and AdviceType are unknown for a foreign compiler.
    bool Bare = false;
    /// The elementTypeName() of the advice that the compiler expects. Empty if
    /// the type is unknown.
    std::string_view AdviceType;
    /// Identifies the layout of the features. If two requests of a session have
    /// equal LayoutIds, their features have the same names, types, shapes and
    /// addresses. A model can then reuse objects that it made from the views.
    struct LayoutId {
      /// The number of times that the session's receive buffer has moved.
      std::uint64_t Memory = 0;
      /// BaseSerDes::layout().
      std::uint64_t Schema = 0;
    };
    LayoutId Layout;
    /// An owner of the memory that the views point to. The owner keeps the
    /// memory alive, but the session's next request overwrites its contents.
    std::shared_ptr<const void> Memory;
  };

  struct Statistics {
    std::uint64_t Sessions = 0; ///< All sessions since the start.
    std::uint64_t Open = 0;     ///< Sessions that are open now.
    std::uint64_t Requests = 0; ///< Received requests.
    std::uint64_t Batches = 0;  ///< Batches that nextBatch() has returned.
    std::uint64_t Refused = 0;  ///< Compilers that were refused.
  };

  /// Creates a server that listens at \p Name, as openLocalListener()
  /// describes.
  static Expected<std::unique_ptr<ModelServer>>
  listen(std::string Name, ModelServerOptions Options = {});
  /// Creates a server for the compilers that connect to any of \p Listeners.
  static std::unique_ptr<ModelServer>
  create(std::vector<std::unique_ptr<Listener>> Listeners);
  virtual ~ModelServer();

  /// Waits for requests and returns a batch of at least one request. If
  /// requests of the last batch have no reply yet, first answers them with an
  /// error. Returns Timeout after \p Within, or System if poll(2) fails. If a
  /// session fails, the session ends, but nextBatch() continues to wait.
  /// lastSessionError() returns the session's error.
  virtual Expected<Span<const Request>> nextBatch(const BatchLimits &Limits,
                                                  Duration Within) = 0;
  /// Waits for the next request of any compiler. Returns the errors of
  /// nextBatch().
  Expected<Request> next(Deadline Until);

  /// Sends \p Advice as the reply to the request at \p Index of the last batch.
  /// Returns an error if the compiler did not receive \p Advice. The server
  /// keeps running in any case. If the SerDes cannot express the advice, or the
  /// advice exceeds the maximum message size, the compiler receives the reason
  /// as an error, and the session continues. If the reason cannot be sent or
  /// the compiler has disconnected, the session ends.
  virtual Error reply(std::size_t Index, Span<const TensorView> Advice) = 0;
  /// Sends \p Advice as the reply to the last request that next() returned.
  Error reply(Span<const TensorView> Advice) { return reply(0, Advice); }
  /// Replies that the model failed. The compiler receives ErrorCode::Model with
  /// at most the first 4096 bytes of \p Message.
  Error replyError(std::string_view Message, std::size_t Index = 0);
  /// Replies that the model leaves the decision to the compiler. The compiler
  /// receives ErrorCode::Deferred with at most the first 4096 bytes of \p Why.
  Error replyDeferred(std::string_view Why, std::size_t Index = 0);

  /// Returns whether the session with number \p Session is open.
  virtual bool isOpen(std::uint64_t Session) const = 0;
  virtual Statistics statistics() const = 0;
  /// Starts to measure the time of each request, for latencies().
  virtual void measureLatencies() = 0;
  /// Returns the \p Quantiles (0 to 1) of the time from the receipt of a
  /// request until its reply was sent. The relative precision is 1/16. Any
  /// thread may call this function at any time.
  virtual std::vector<Duration>
  latencies(Span<const double> Quantiles) const = 0;
  /// Returns the error of the session that failed last, or success if none has
  /// failed.
  virtual const Error &lastSessionError() const = 0;
  /// Returns the reason for the last refusal of a compiler, or success if none
  /// has been refused.
  virtual const Error &lastRefusal() const = 0;
  /// Returns the names of the listeners, separated by ", ".
  virtual const std::string &name() const = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_MODELSERVER_H
