//===- Server.h - ModelServer in Python -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Server wraps a ModelServer for Python. Requests become dicts of arrays, and
/// replies are Python values.
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

/// The Python class mlbridge._core.Server. Only one thread at a time may use a
/// server, but any thread may call stop() and latencies().
///
/// A server waits without the GIL. Every 100 ms, it runs Python's signal
/// handlers, so that Ctrl-C interrupts the wait.
class Server {
public:
  /// Takes over the listeners in \p Listeners, a sequence of ListenerInPython.
  /// Failures and refusals are passed to \p OnWarning.
  Server(const nanobind::sequence &Listeners, nanobind::object OnWarning);
  ~Server();
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  /// Sends the replies that have been set, waits for the next request, and
  /// returns the request's features. Returns None after \p Timeout seconds or
  /// after stop().
  nanobind::object exchange(std::optional<double> Timeout);
  /// Does the same as exchange(), but returns a list with the features of all
  /// requests that are waiting at the same time.
  nanobind::object exchangeBatch(std::size_t MaxSize, double MaxDelay,
                                 std::optional<double> Timeout);

  // These functions set the reply to the request with index \p Index in the
  // last batch.
  void setReply(nanobind::handle Value, std::size_t Index);
  void setMessage(const nanobind::dict &Tensors);
  void setError(const nanobind::str &Message, std::size_t Index);
  void setDeferred(const nanobind::str &Why, std::size_t Index);
  /// Sends the replies that have been set, without waiting for a request.
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

  /// The failures that occurred while replies were sent.
  struct Sent {
    struct Failed {
      ReplyKind Kind;
      std::uint64_t Session;
      int Pid;
      /// The reason why the reply could not be sent.
      MLBridge::Error Why;
      /// True if the session has ended, because neither the reply nor an error
      /// could be sent to the compiler.
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

  /// The maximum time between two runs of Python's signal handlers.
  static constexpr std::chrono::milliseconds Slice{100};
  static constexpr std::size_t MaxMistyped = 4096;

  /// Sends the replies and waits for requests. Returns true if requests have
  /// arrived.
  bool advance(const BatchLimits &Limits, std::optional<double> Timeout);
  /// Stores the requests that Python can represent, and refuses all other
  /// requests. Returns true if it has stored a request.
  bool take(Span<const ModelServer::Request> Requests);
  const ModelServer::Request &first() const;
  Exchange &at(std::size_t Index);
  void setText(Exchange &E, ReplyKind Kind, std::string Text);
  void addOutput(Exchange &E, std::string_view Name, nanobind::handle Value,
                 bool IsTaken);
  void checkOpen() const;
  /// The caller must not hold the GIL.
  Sent sendReplies();
  void finishSend(const Sent &Last);
  void refuse(const ModelServer::Request &Request, std::size_t Index,
              const std::string &Why);
  void forget();
  void warn(std::string_view What, const nanobind::object &Why);
  void report(const Sent &Last);

  ForkDetector Fork;
  /// The wrapped server, or null after close().
  std::unique_ptr<ModelServer> Impl;
  std::string Name;
  /// Names the server in messages.
  std::string Description;
  nanobind::object OnWarning;
  FeatureViews Views;
  /// The first NumAsked elements are requests that wait for a reply. The
  /// remaining elements are unused. They are kept so that their memory can be
  /// reused.
  std::vector<std::unique_ptr<Exchange>> Exchanges;
  std::size_t NumAsked = 0;
  /// The features of the last batch, as Python dicts.
  std::vector<nanobind::dict> Shown;
  UseMark InUse;
  std::atomic<bool> Stopped = false;
  ModelServer::Statistics Counts;
  std::uint64_t NumRefused = 0;
  std::uint64_t NumMistyped = 0;
  /// The open sessions in which no reply so far could be converted to the
  /// advice type of the session's first request.
  std::unordered_set<std::uint64_t> Mistyped;
  std::string LastReported;
  std::uint64_t RefusalsReported = 0;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_SERVER_H
