//===- GRPCServerCall.h - A call that has come in ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerCall: a stream or a unary call, from its arrival to its end.
/// RequestQueue: the requests of one session, on their way from gRPC's thread
/// to the server's.
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

/// What the request queues of one listener share: the eventfd by which gRPC's
/// thread wakes the server's, and whether this is the process that made them. A
/// session has no descriptor of its own.
struct RequestQueueOwner {
  static Expected<std::shared_ptr<RequestQueueOwner>> create();

  /// Makes Doorbell readable.
  void ring() const;
  /// Makes Doorbell unreadable until the next ring().
  void hearRings() const;

  posix::UniqueFD Doorbell;
  ForkDetector Fork;
};

/// Used by two threads: gRPC's puts in, the server's takes out.
class RequestQueue {
public:
  explicit RequestQueue(std::shared_ptr<const RequestQueueOwner> Owner)
      : Owner(std::move(Owner)) {}

  /// \name gRPC's thread
  /// @{

  /// A call has begun, or has ended, by an answer or without one.
  void beginCall() { ++Unanswered; }
  void endCall();
  /// Since when there has been no call; nothing where there is one.
  std::optional<Deadline::Clock::time_point> idleSince() const;
  /// The request of \p From. Where nobody will take it any more, not OK: how
  /// its call is to end.
  grpc::Status put(std::shared_ptr<ServerCall> From);
  /// The compiler is gone, or has said that it has no more requests.
  void end();
  bool isClosed();
  /// Something that was in the way of a request no longer is.
  void look();

  /// @}
  /// \name The server's thread
  /// @{

  bool isEmpty() const { return !HasQuestions.load(); }
  bool hasEnded() const { return HasEnded.load(); }
  /// The next request's call; null where there is none.
  std::shared_ptr<ServerCall> take();
  /// From now on, put() returns \p Why. Returns what nobody will take any more.
  std::deque<std::shared_ptr<ServerCall>> close(const grpc::Status &Why);

  /// Whether changes are rung for.
  void setSleeping(bool IsSleeping) { Sleeps.store(IsSleeping); }
  /// Whether this is a copy in a forked child, whose calls are its parent's.
  bool isForked() const { return Owner->Fork.isForked(); }

  /// @}

private:
  void ring();

  std::shared_ptr<const RequestQueueOwner> Owner;
  std::mutex Mutex;
  std::deque<std::shared_ptr<ServerCall>> Requests;
  bool IsClosed = false;
  grpc::Status ClosedBecause;
  std::atomic<bool> HasQuestions = false;
  std::atomic<bool> HasEnded = false;
  std::atomic<bool> Sleeps = false;
  std::atomic<unsigned> Unanswered = 0;
  std::atomic<Deadline::Clock::time_point> LastEnd = Deadline::Clock::now();
};

/// Kept alive by its operations.
class ServerCall : public std::enable_shared_from_this<ServerCall> {
public:
  /// Who wants to know of new calls.
  class Owner {
  public:
    virtual void hasArrived(std::shared_ptr<ServerCall> Call) = 0;

  protected:
    ~Owner() = default;
  };
  explicit ServerCall(Owner &Server) : Server(Server) {}

  /// The tags of its operations.
  class Tag {
  public:
    Tag(ServerCall &Call, void (ServerCall::*Then)(bool))
        : Call(Call), Then(Then) {}
    /// What completed() is for.
    void complete(bool Ok) { Call.complete(Then, Ok); }

  private:
    ServerCall &Call;
    void (ServerCall::*Then)(bool);
  };

  /// Waits for a call to arrive.
  void await(grpc::AsyncGenericService &Service,
             grpc::ServerCompletionQueue &Queue);

  const std::string &method() const { return Context.method(); }
  std::string peer() const { return Context.peer(); }
  /// The value of a key of the client's metadata, or \p Default.
  std::string metadata(const char *Key, std::string_view Default) const;

  /// Reads the first request into \p Into. The end of a stream is the
  /// session's; other calls share one.
  void read(std::shared_ptr<RequestQueue> Into, bool IsStream);
  bool isStream() const { return IsStream; }
  /// The request that was put into the request queue. Leaves it empty.
  grpc::ByteBuffer &request() { return Request; }
  /// Sends an answer and, by a stream, reads the next request.
  void answer(const grpc::ByteBuffer &Message);
  /// Whether the last answer is still on its way.
  bool isAnswering() const { return Answering.load(); }
  void finish(const grpc::Status &Status);
  void cancel() { Context.TryCancel(); }

private:
  void complete(void (ServerCall::*Then)(bool), bool Ok);
  /// \p Which, as the tag of an operation that begins.
  void *begin(Tag &Which);
  std::shared_ptr<RequestQueue> queue();
  void readNext();
  void arrived(bool Ok);
  void done(bool Ok);
  void hasRead(bool Ok);
  void hasWritten(bool Ok);
  void finished(bool) {}
  /// Tells the request queue of a unary call that it has ended. Under the lock.
  void endUnary();

  Owner &Server;
  grpc::GenericServerContext Context;
  grpc::GenericServerAsyncReaderWriter Stream{&Context};
  grpc::ByteBuffer Request;
  Tag Arrived{*this, &ServerCall::arrived};
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
  std::shared_ptr<RequestQueue> Box;
  std::atomic<bool> Answering = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSERVERCALL_H
