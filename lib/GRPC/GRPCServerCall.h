//===- GRPCServerCall.h - A call to a gRPC server ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerCall: a stream or a unary call, from its beginning to its end.
/// RequestQueue: passes the requests of one session from gRPC's thread to the
/// server's thread.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSERVERCALL_H
#define MLBRIDGE_LIB_GRPC_GRPCSERVERCALL_H

#include "MLCompilerBridge/Deadline.h"
#include "Support/ForkDetector.h"
#include "Support/Posix.h"

#include <atomic>
#include <deque>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace MLBridge::GRPC {

class ServerCall;

/// The state that the request queues of one listener share. It has one
/// doorbell, an eventfd through which gRPC's thread wakes the server's thread.
/// Because the doorbell is shared, a session needs no descriptor of its own.
struct RequestQueueOwner {
  static Expected<std::shared_ptr<RequestQueueOwner>> create();

  /// Makes Doorbell readable.
  void ring() const;
  /// Makes Doorbell unreadable until the next ring().
  void clearDoorbell() const;

  posix::UniqueFD Doorbell;
  ForkDetector Fork;
};

/// The requests of one session. Two threads use the queue: gRPC's thread adds
/// requests, and the server's thread removes them.
class RequestQueue {
public:
  explicit RequestQueue(std::shared_ptr<const RequestQueueOwner> Owner)
      : Owner(std::move(Owner)) {}

  /// \name Functions for gRPC's thread
  /// @{

  /// Adds a unary call to the number of open calls. endCall() subtracts it when
  /// the call has ended.
  void beginCall() { ++Unanswered; }
  void endCall();
  /// Returns the time at which the last unary call ended. Returns nullopt while
  /// a call is open.
  std::optional<Deadline::Clock::time_point> idleSince() const;
  /// Adds the request of the call \p From. Returns OK, or the status with which
  /// the call must end if the queue is closed.
  grpc::Status put(std::shared_ptr<ServerCall> From);
  /// Records that the compiler has ended the session or is dead.
  void end();
  bool isClosed();
  /// Wakes the server if there is a request. Call this after each reply has
  /// been written, because only then does the server read the next request.
  void notify();

  /// @}
  /// \name Functions for the server's thread
  /// @{

  bool isEmpty() const { return !HasRequests.load(); }
  bool hasEnded() const { return HasEnded.load(); }
  /// Removes the next request and returns its call. Returns null if the queue
  /// is empty.
  std::shared_ptr<ServerCall> take();
  /// Closes the queue. From now on, put() returns \p Why. Returns the calls
  /// whose requests are still in the queue.
  std::deque<std::shared_ptr<ServerCall>> close(const grpc::Status &Why);

  /// Sets whether changes of the queue ring the doorbell.
  void setSleeping(bool IsSleeping) { Sleeps.store(IsSleeping); }
  /// Returns true in a forked child. The calls then belong to the parent.
  bool isForked() const { return Owner->Fork.isForked(); }

  /// @}

private:
  void ring();

  std::shared_ptr<const RequestQueueOwner> Owner;
  std::mutex Mutex;
  std::deque<std::shared_ptr<ServerCall>> Requests;
  bool IsClosed = false;
  grpc::Status ClosedBecause;
  std::atomic<bool> HasRequests = false;
  std::atomic<bool> HasEnded = false;
  std::atomic<bool> Sleeps = false;
  std::atomic<unsigned> Unanswered = 0;
  std::atomic<Deadline::Clock::time_point> LastEnd = Deadline::Clock::now();
};

/// One call. The call stays alive while one of its operations is pending.
class ServerCall : public std::enable_shared_from_this<ServerCall> {
public:
  /// The receiver of new calls.
  class Owner {
  public:
    virtual void handleCall(std::shared_ptr<ServerCall> Call) = 0;

  protected:
    ~Owner() = default;
  };
  explicit ServerCall(Owner &Server) : Server(Server) {}

  /// The tag of an operation. gRPC returns the tag when the operation is
  /// complete.
  class Tag {
  public:
    Tag(ServerCall &Call, void (ServerCall::*Then)(bool))
        : Call(Call), Then(Then) {}
    /// Handles the end of the operation. \p Ok is true if the operation
    /// succeeded.
    void complete(bool Ok) { Call.complete(Then, Ok); }

  private:
    ServerCall &Call;
    void (ServerCall::*Then)(bool);
  };

  /// Starts waiting for the next call.
  void await(grpc::AsyncGenericService &Service,
             grpc::ServerCompletionQueue &Queue);

  const std::string &method() const { return Context.method(); }
  std::string peer() const { return Context.peer(); }
  /// Returns the client's metadata for \p Key. Returns \p Default if the client
  /// sent none.
  std::string metadata(const char *Key, std::string_view Default) const;

  /// Reads the first request and adds it to \p Into. If the call is a stream,
  /// its end also ends the session. A session outlives its unary calls. If
  /// \p ExpectsOne is true, a second request that arrives before the reply ends
  /// the call with UNIMPLEMENTED. gRPC itself ignores such a request.
  void read(std::shared_ptr<RequestQueue> Into, bool IsStream,
            bool ExpectsOne = false);
  bool isStream() const { return IsStream; }
  /// Returns the request that was added to the queue.
  grpc::ByteBuffer &request() { return Request; }
  /// Sends a reply. If the call is a stream, also starts to read the next
  /// request.
  void reply(const grpc::ByteBuffer &Message);
  /// Returns true if the last reply is still being written.
  bool isReplying() const { return IsReplying.load(); }
  void finish(const grpc::Status &Status);
  void cancel() { Context.TryCancel(); }

private:
  void complete(void (ServerCall::*Then)(bool), bool Ok);
  /// Counts an operation as pending. Returns the operation's tag, \p Which.
  void *begin(Tag &Which);
  std::shared_ptr<RequestQueue> queue();
  void readNext();
  void hasBegun(bool Ok);
  void done(bool Ok);
  void hasRead(bool Ok);
  void hasReadExtra(bool Ok);
  void hasWritten(bool Ok);
  void finished(bool) {}
  /// Reports the end of this unary call to the queue. The caller must have
  /// locked Mutex.
  void endUnary();

  Owner &Server;
  grpc::GenericServerContext Context;
  grpc::GenericServerAsyncReaderWriter Stream{&Context};
  grpc::ByteBuffer Request;
  /// A second request, which a client of a unary method never sends.
  grpc::ByteBuffer Extra;
  Tag Begun{*this, &ServerCall::hasBegun};
  Tag Done{*this, &ServerCall::done};
  Tag Read{*this, &ServerCall::hasRead};
  Tag ReadExtra{*this, &ServerCall::hasReadExtra};
  Tag Written{*this, &ServerCall::hasWritten};
  Tag Finished{*this, &ServerCall::finished};

  std::mutex Mutex;
  std::shared_ptr<ServerCall> Self;
  unsigned Pending = 0;
  bool HasStatus = false;
  bool HasEnded = false;
  bool IsStream = false;
  bool ExpectsOne = false;
  bool IsReading = false;
  std::shared_ptr<RequestQueue> Queue;
  std::atomic<bool> IsReplying = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSERVERCALL_H
