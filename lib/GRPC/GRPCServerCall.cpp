//===- GRPCServerCall.cpp - A call to a gRPC server -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerCall.h"

#include "Support/PrintableText.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

//===----------------------------------------------------------------------===//
// RequestQueue
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<RequestQueueOwner>> RequestQueueOwner::create() {
  auto Made = std::make_shared<RequestQueueOwner>();
  Made->Doorbell = posix::UniqueFD(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!Made->Doorbell)
    return Error::fromErrno(errno, "cannot create an eventfd");
  return Made;
}

void RequestQueueOwner::ring() const {
  const std::uint64_t Ring = 1;
  // Ignore the result. The write fails only if the eventfd's counter overflows,
  // but each queue adds at most 1 per sleep.
  (void)!::write(Doorbell.get(), &Ring, sizeof(Ring));
}

void RequestQueueOwner::clearDoorbell() const {
  std::uint64_t Rings;
  (void)!::read(Doorbell.get(), &Rings, sizeof(Rings));
}

/// Rings the doorbell if the server's thread sleeps. The server's thread sets
/// Sleeps before it checks the queue. gRPC's thread changes the queue before it
/// checks Sleeps. The atomics are sequentially consistent, so no change is
/// missed.
void RequestQueue::ring() {
  if (Sleeps.exchange(false))
    Owner->ring();
}

grpc::Status RequestQueue::put(std::shared_ptr<ServerCall> From) {
  {
    std::scoped_lock Lock(Mutex);
    if (IsClosed)
      return ClosedBecause;
    Requests.push_back(std::move(From));
    HasRequests.store(true);
  }
  ring();
  return grpc::Status::OK;
}

void RequestQueue::endCall() {
  LastEnd.store(Deadline::Clock::now());
  --Unanswered;
}

std::optional<Deadline::Clock::time_point> RequestQueue::idleSince() const {
  if (Unanswered.load() != 0)
    return std::nullopt;
  return LastEnd.load();
}

void RequestQueue::end() {
  HasEnded.store(true);
  ring();
}

void RequestQueue::notify() {
  if (HasRequests.load())
    ring();
}

std::shared_ptr<ServerCall> RequestQueue::take() {
  std::scoped_lock Lock(Mutex);
  if (Requests.empty())
    return nullptr;
  std::shared_ptr<ServerCall> First = std::move(Requests.front());
  Requests.pop_front();
  HasRequests.store(!Requests.empty());
  return First;
}

bool RequestQueue::isClosed() {
  std::scoped_lock Lock(Mutex);
  return IsClosed;
}

std::deque<std::shared_ptr<ServerCall>>
RequestQueue::close(const grpc::Status &Why) {
  std::scoped_lock Lock(Mutex);
  IsClosed = true;
  ClosedBecause = Why;
  HasRequests.store(false);
  return std::exchange(Requests, {});
}

//===----------------------------------------------------------------------===//
// ServerCall
//===----------------------------------------------------------------------===//

void *ServerCall::begin(Tag &Which) {
  if (Pending++ == 0)
    Self = shared_from_this();
  return &Which;
}

void ServerCall::complete(void (ServerCall::*Then)(bool), bool Ok) {
  (this->*Then)(Ok);
  std::shared_ptr<ServerCall> Last;
  std::scoped_lock Lock(Mutex);
  if (--Pending == 0)
    Last = std::move(Self);
}

void ServerCall::await(grpc::AsyncGenericService &Service,
                       grpc::ServerCompletionQueue &Queue) {
  std::scoped_lock Lock(Mutex);
  Context.AsyncNotifyWhenDone(begin(Done));
  Service.RequestCall(&Context, &Stream, &Queue, &Queue, begin(Begun));
}

void ServerCall::hasBegun(bool Ok) {
  if (Ok)
    return Server.handleCall(shared_from_this());
  // The server is shutting down. gRPC does not complete Done for a call that
  // has not begun, so count it as complete here.
  std::scoped_lock Lock(Mutex);
  --Pending;
}

std::string ServerCall::metadata(const char *Key,
                                 std::string_view Default) const {
  const auto &All = Context.client_metadata();
  auto Found = All.find(Key);
  return Found == All.end()
             ? std::string(Default)
             : std::string(Found->second.data(), Found->second.size());
}

std::shared_ptr<RequestQueue> ServerCall::queue() {
  std::scoped_lock Lock(Mutex);
  return Queue;
}

void ServerCall::read(std::shared_ptr<RequestQueue> Into, bool IsStream,
                      bool ExpectsOne) {
  std::scoped_lock Lock(Mutex);
  Queue = std::move(Into);
  this->IsStream = IsStream;
  this->ExpectsOne = ExpectsOne;
  if (!IsStream)
    Queue->beginCall();
  readNext();
}

void ServerCall::endUnary() {
  if (Queue && !IsStream && !std::exchange(HasEnded, true))
    Queue->endCall();
}

void ServerCall::readNext() {
  IsReading = true;
  Stream.Read(&Request, begin(Read));
}

void ServerCall::hasRead(bool Ok) {
  std::shared_ptr<RequestQueue> To;
  {
    std::scoped_lock Lock(Mutex);
    IsReading = false;
    To = Queue;
    if (Ok && ExpectsOne)
      Stream.Read(&Extra, begin(ReadExtra));
  }
  if (Ok) {
    if (grpc::Status S = To->put(shared_from_this()); !S.ok())
      finish(S);
  } else if (IsStream) {
    To->end();
  } else {
    // End the call, because the client has cancelled it.
    std::scoped_lock Lock(Mutex);
    endUnary();
  }
}

void ServerCall::hasReadExtra(bool Ok) {
  // Without a second request, this read fails when the client or the call ends.
  if (Ok)
    finish({grpc::StatusCode::UNIMPLEMENTED,
            "expected one request for the unary method " + printable(method()) +
                ", found several"});
}

void ServerCall::done(bool) {
  // A call that was refused has no queue, so check for null.
  if (std::shared_ptr<RequestQueue> To = queue(); To && IsStream)
    To->end();
}

void ServerCall::reply(const grpc::ByteBuffer &Message) {
  std::scoped_lock Lock(Mutex);
  // The call has been refused because of a second request.
  if (HasStatus && ExpectsOne)
    return;
  IsReplying.store(true);
  if (!IsStream) {
    HasStatus = true;
    endUnary();
    Stream.WriteAndFinish(Message, grpc::WriteOptions(), grpc::Status::OK,
                          begin(Written));
    return;
  }
  Stream.Write(Message, begin(Written));
  // Do not start a second read. If this side sent the first message of the
  // stream, a read is already pending.
  if (!IsReading)
    readNext();
}

void ServerCall::hasWritten(bool) {
  IsReplying.store(false);
  queue()->notify();
}

void ServerCall::finish(const grpc::Status &Status) {
  std::scoped_lock Lock(Mutex);
  if (std::exchange(HasStatus, true))
    return;
  endUnary();
  Stream.Finish(Status, begin(Finished));
}
