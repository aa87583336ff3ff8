//===- ModelServer.h - The model's side of a session ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelServer: meets compilers at its listeners and hands out their requests,
/// one after another or in batches. Python's CompilerInterface classes are a
/// thin face over it; a model written in C++ uses it directly.
/// \code
///   auto Server = ModelServer::listen("/tmp/advisor");
///   FeatureSet Reply;
///   while (auto Request = (*Server)->next(Deadline::never())) {
///     Reply.clear();
///     Reply.set("out", decide(Request->Features));
///     if (Error E = (*Server)->reply(Reply.tensors()))
///       std::cerr << E.str() << '\n'; // This compiler did not get it.
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

/// How a ModelServer meets its compilers at one name.
struct ModelServerOptions : ListenerOptions {
  /// Also offer NAME.in and NAME.out for foreign compilers, one at a time,
  /// which speak BareFormat. Our own meet at NAME.sock and choose theirs.
  bool Bare = true;
  std::string BareFormat = "bitstream";
};

/// Which requests are handed out together: those of compilers that wait at
/// the same moment. A compiler has one at a time, so a batch holds at most one
/// of each.
struct BatchLimits {
  std::size_t MaxSize = 1;
  /// How long the first request of a batch may wait for others.
  Duration MaxDelay = Duration::zero();
};

/// Serves any number of compilers, each in its own session. A compiler that
/// dies, stalls or sends nonsense ends its own session only, and one that does
/// not take its answer keeps nobody waiting. Used by one thread at a time, and
/// by the process that has made it: one that forks, as a daemon does, forks
/// first and listens then.
class ModelServer {
public:
  /// One request. The views are valid until the next call of next() or
  /// nextBatch().
  struct Request {
    Span<const TensorView> Features;
    /// Which compiler asks; counts up from 1.
    std::uint64_t Session = 0;
    /// Whether it is that compiler's first.
    bool IsFirst = false;
    /// Its process.
    int Pid = 0;
    /// It is a foreign compiler on bare pipes, which says neither its process
    /// nor the advice it wants.
    bool Bare = false;
    /// elementTypeName() of the advice it wants, or empty where it did not
    /// say.
    std::string_view AdviceType;
    /// Two requests of a session in which both numbers are the same have the
    /// same names, types, shapes and addresses: for those who cache views.
    struct LayoutId {
      /// How often the memory has changed.
      std::uint64_t Memory = 0;
      /// BaseSerDes::layout().
      std::uint64_t Schema = 0;
    };
    LayoutId Layout;
    /// Keeps the memory of the views alive for those who hold them longer;
    /// their contents change all the same.
    std::shared_ptr<const void> Memory;
  };

  struct Statistics {
    std::uint64_t Sessions = 0; ///< HandshakeResult so far.
    std::uint64_t Open = 0;     ///< Of these, now open.
    std::uint64_t Requests = 0; ///< Answered or not.
    std::uint64_t Batches = 0;  ///< In which they were handed out.
    std::uint64_t Refused = 0;  ///< Compilers that got no session.
  };

  /// Listens at \p Name: see openLocalListener().
  static Expected<std::unique_ptr<ModelServer>>
  listen(std::string Name, ModelServerOptions Options = {});
  /// Serves the compilers that come to any of \p Listeners.
  static std::unique_ptr<ModelServer>
  create(std::vector<std::unique_ptr<Listener>> Listeners);
  virtual ~ModelServer();

  /// The next requests, one at least. Errors: Timeout after \p Within;
  /// System when this end is broken. What a compiler does wrong ends that
  /// session and shows in lastSessionError(), not here. Requests that were not
  /// answered by the next call are answered with an error.
  virtual Expected<Span<const Request>> nextBatch(const BatchLimits &Limits,
                                                  Duration Within) = 0;
  /// The next request of any compiler: a batch of one.
  Expected<Request> next(Deadline Until);

  /// Answers the request at \p Index of the last batch. An error means that
  /// this compiler did not get it; the server goes on. Advice that has no form
  /// in the session's format, or is longer than max-message: the compiler is
  /// told that instead, as by replyError(), and its session goes on. It is over
  /// where that could not be sent, or the compiler is gone.
  virtual Error reply(std::size_t Index, Span<const TensorView> Advice) = 0;
  /// Answers the last request that next() returned.
  Error reply(Span<const TensorView> Advice) { return reply(0, Advice); }
  /// Answers that the model failed: the compiler sees ErrorCode::Model. Only
  /// the first 4096 bytes are sent; the same holds for replyDeferred().
  Error replyError(std::string_view Message, std::size_t Index = 0);
  /// Leaves the decision to the compiler: it sees ErrorCode::Deferred.
  Error replyDeferred(std::string_view Why, std::size_t Index = 0);

  /// Whether that session goes on.
  virtual bool isOpen(std::uint64_t Session) const = 0;
  virtual Statistics statistics() const = 0;
  /// From now on, notes how long requests take.
  virtual void measureLatencies() = 0;
  /// How long requests took from their arrival until their answers were on
  /// the way: the values below which each of \p Quantiles (0 to 1) lies, to a
  /// 16th. May be called by any thread.
  virtual std::vector<Duration>
  latencies(Span<const double> Quantiles) const = 0;
  /// Why the last session that did not end well ended; success if none did.
  virtual const Error &lastSessionError() const = 0;
  /// Why the last compiler that got no session got none; success if all did.
  virtual const Error &lastRefusal() const = 0;
  /// The names of its listeners.
  virtual const std::string &name() const = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_MODELSERVER_H
