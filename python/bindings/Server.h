//===- Server.h - ModelServer in Python -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Server: a ModelServer whose requests are dicts of arrays and whose replies
/// are Python values.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_SERVER_H
#define MLBRIDGE_PYTHON_SERVER_H

#include "Bindings.h"
#include "FeatureViews.h"
#include "FromPython.h"

#include "MLCompilerBridge/Transport/ModelServer.h"
#include "Support/ForkDetector.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace MLBridge::Python {

/// mlbridge._core.Server. Used by one thread at a time, except stop() and
/// latencies().
///
/// Waits without the GIL, in slices of 100 ms between which it runs Python's
/// signal handlers, so that Ctrl-C takes effect.
class Server {
public:
  /// Takes the listeners from \p Listeners, a sequence of ListenerInPython.
  Server(const nanobind::sequence &Listeners, nanobind::object OnWarning);
  ~Server();
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  /// Sends the replies that are set, waits for the next request, and returns
  /// its features. Returns None after \p Timeout seconds or after stop().
  nanobind::object exchange(std::optional<double> Timeout);
  /// Like exchange(), but returns a list of the dicts of all requests that wait
  /// at the same moment.
  nanobind::object exchangeBatch(std::size_t MaxSize, double MaxDelay,
                                 std::optional<double> Timeout);

  // Each sets the reply to request number \p Index of the last batch.
  void setReply(nanobind::handle Value, std::size_t Index);
  void setMessage(const nanobind::dict &Tensors);
  void setError(const nanobind::str &Message, std::size_t Index);
  void setDeferred(const nanobind::str &Why, std::size_t Index);
  /// Sends the replies that are set, without waiting for a request.
  void send();

  void stop() { Stopped.store(true, std::memory_order_relaxed); }
  void close();
  bool isClosed() const { return !Impl; }

  const std::string &name() const { return Name; }
  nanobind::tuple client(std::size_t Index) const;
  std::uint64_t session() const { return first().Session; }
  int pid() const { return first().Pid; }
  std::string_view adviceType() const { return first().AdviceType; }
  bool bare() const { return first().Bare; }
  std::uint64_t sessions() const { return Counts.Sessions; }
  std::uint64_t open() const { return Counts.Open; }
  std::uint64_t requests() const { return Counts.Requests; }
  std::uint64_t batches() const { return Counts.Batches; }
  std::uint64_t refusedRequests() const { return NumRefused; }
  std::uint64_t refusedCompilers() const { return Counts.Refused; }
  std::uint64_t mistyped() const { return NumMistyped; }
  void measureLatencies();
  std::vector<double> latencies(const std::vector<double> &Quantiles) const;

private:
  enum class ReplyKind : std::uint8_t { None, Advice, Error, Deferred };

  /// A request that Python has received, and its reply.
  struct Exchange {
    ModelServer::Request Request;
    /// The request's index in the ModelServer's batch.
    std::size_t Index = 0;
    ReplyKind Pending = ReplyKind::None;
    TensorsFromPython Reply{"reply"};
    std::string Text;
  };

  /// The result of sending the replies.
  struct Sent {
    struct Failed {
      ReplyKind Kind;
      std::uint64_t Session;
      int Pid;
      /// Why the reply could not be sent.
      MLBridge::Error Why;
      /// True if the session ended because the compiler could not be told.
      bool IsOver;

      bool isAuthorsFault() const;
      nanobind::object exception() const;
    };
    std::vector<Failed> Failures;

    bool isAuthorsFault() const {
      return std::ranges::any_of(Failures, &Failed::isAuthorsFault);
    }
    void raiseAuthorsFaults() const;
  };

  /// The longest delay of a signal handler.
  static constexpr std::chrono::milliseconds Slice{100};
  static constexpr std::size_t MaxMistyped = 4096;

  /// Sends the replies and waits. Returns true if there are requests.
  bool advance(const BatchLimits &Limits, std::optional<double> Timeout);
  /// Takes the requests that Python can represent. Returns true if it took any.
  bool take(Span<const ModelServer::Request> Requests);
  const ModelServer::Request &first() const;
  Exchange &at(std::size_t Index);
  void setText(Exchange &E, ReplyKind Kind, std::string Text);
  void addOutput(Exchange &E, std::string_view Name, nanobind::handle Value,
                 bool IsTaken);
  void checkOpen() const;
  /// Called without the GIL.
  Sent sendReplies();
  void finishSend(const Sent &Last);
  void refuse(const ModelServer::Request &Request, std::size_t Index,
              const std::string &Why);
  void forget();
  void warn(std::string_view What, const nanobind::object &Why);
  void report(const Sent &Last);

  ForkDetector Fork;
  /// Null after close().
  std::unique_ptr<ModelServer> Impl;
  std::string Name;
  /// For messages.
  std::string Description;
  nanobind::object OnWarning;
  FeatureViews Views;
  /// The first NumAsked exchanges wait for their replies. The others are kept
  /// so that their memory can be reused.
  std::vector<std::unique_ptr<Exchange>> Exchanges;
  std::size_t NumAsked = 0;
  /// The dicts of these requests.
  std::vector<nanobind::dict> Shown;
  UseMark InUse;
  std::atomic<bool> Stopped = false;
  ModelServer::Statistics Counts;
  std::uint64_t NumRefused = 0;
  std::uint64_t NumMistyped = 0;
  /// The open sessions whose replies so far could never be converted to the
  /// type that the session's first request wants.
  std::unordered_set<std::uint64_t> Mistyped;
  std::string LastReported;
  std::uint64_t RefusalsReported = 0;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_SERVER_H
