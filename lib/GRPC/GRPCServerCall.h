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
/// server's.
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

/// The state that the request queues of one listener share: the eventfd by
/// which gRPC's thread wakes the server's, so that a session needs no
/// descriptor, and the detector of forked children.
struct RequestQueueOwner {
  static Expected<std::shared_ptr<RequestQueueOwner>> create();

  /// Makes Doorbell readable.
  void ring() const;
  /// Makes Doorbell unreadable until the next ring().
  void clearDoorbell() const;

  posix::UniqueFD Doorbell;
  ForkDetector Fork;
};

/// The requests of one session. Used by two threads: gRPC's puts requests in,
/// the server's takes them out.
class RequestQueue {
public:
  explicit RequestQueue(std::shared_ptr<const RequestQueueOwner> Owner)
      : Owner(std::move(Owner)) {}

  /// \name gRPC's thread
  /// @{

  /// Counts the unary calls of the session that have begun and not ended.
  void beginCall() { ++Unanswered; }
  void endCall();
  /// When the last unary call ended; nullopt while a call is open.
  std::optional<Deadline::Clock::time_point> idleSince() const;
  /// Adds the request of \p From. If the queue is closed, returns the status
  /// with which the call must end; otherwise OK.
  grpc::Status put(std::shared_ptr<ServerCall> From);
  /// Says that the compiler has ended the session or is gone.
  void end();
  bool isClosed();
  /// Says that the last reply has been written, so the next request can be
  /// taken.
  void notify();

  /// @}
  /// \name The server's thread
  /// @{

  bool isEmpty() const { return !HasRequests.load(); }
  bool hasEnded() const { return HasEnded.load(); }
  /// Takes the call of the next request; null if the queue is empty.
  std::shared_ptr<ServerCall> take();
  /// Closes the queue: put() returns \p Why from now on. Returns the remaining
  /// calls.
  std::deque<std::shared_ptr<ServerCall>> close(const grpc::Status &Why);

  /// Sets whether changes ring the doorbell.
  void setSleeping(bool IsSleeping) { Sleeps.store(IsSleeping); }
  /// Whether this is a copy in a forked child: the calls belong to the parent.
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

/// One call. Its pending operations keep it alive.
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

  /// The tag of an operation.
  class Tag {
  public:
    Tag(ServerCall &Call, void (ServerCall::*Then)(bool))
        : Call(Call), Then(Then) {}
    /// Handles the end of the operation; \p Ok is its success.
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
  /// The client's metadata for \p Key, or \p Default.
  std::string metadata(const char *Key, std::string_view Default) const;

  /// Reads the first request and puts it into \p Into. The end of a stream ends
  /// the session, unlike the end of a unary call.
  void read(std::shared_ptr<RequestQueue> Into, bool IsStream);
  bool isStream() const { return IsStream; }
  /// The request that was put into the queue.
  grpc::ByteBuffer &request() { return Request; }
  /// Sends a reply and, in a stream, reads the next request.
  void reply(const grpc::ByteBuffer &Message);
  /// Whether the last reply is still being written.
  bool isReplying() const { return IsReplying.load(); }
  void finish(const grpc::Status &Status);
  void cancel() { Context.TryCancel(); }

private:
  void complete(void (ServerCall::*Then)(bool), bool Ok);
  /// Counts an operation as pending, and returns its tag \p Which.
  void *begin(Tag &Which);
  std::shared_ptr<RequestQueue> queue();
  void readNext();
  void hasBegun(bool Ok);
  void done(bool Ok);
  void hasRead(bool Ok);
  void hasWritten(bool Ok);
  void finished(bool) {}
  /// Tells the queue that this unary call has ended. Mutex must be locked.
  void endUnary();

  Owner &Server;
  grpc::GenericServerContext Context;
  grpc::GenericServerAsyncReaderWriter Stream{&Context};
  grpc::ByteBuffer Request;
  Tag Begun{*this, &ServerCall::hasBegun};
  Tag Done{*this, &ServerCall::done};
  Tag Read{*this, &ServerCall::hasRead};
  Tag Written{*this, &ServerCall::hasWritten};
  Tag Finished{*this, &ServerCall::finished};

  std::mutex Mutex;
  std::shared_ptr<ServerCall> Self;
  unsigned Pending = 0;
  bool HasStatus = false;
  bool HasEnded = false;
  bool IsStream = false;
  bool IsReading = false;
  std::shared_ptr<RequestQueue> Queue;
  std::atomic<bool> IsReplying = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSERVERCALL_H
