//===- GRPCServerCall.cpp - A call that has come in -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerCall.h"

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
    return Error::fromErrno(errno, "cannot make an eventfd");
  return Made;
}

void RequestQueueOwner::ring() const {
  const std::uint64_t Ring = 1;
  // It cannot be full: each sleep is rung for once by each request queue.
  (void)!::write(Doorbell.get(), &Ring, sizeof(Ring));
}

void RequestQueueOwner::hearRings() const {
  std::uint64_t Rings;
  (void)!::read(Doorbell.get(), &Rings, sizeof(Rings));
}

/// The flags are sequentially consistent: who sets Sleeps looks at the request
/// queue after it, and who changes the request queue looks at Sleeps after
/// that.
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
    HasQuestions.store(true);
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

void RequestQueue::look() {
  if (HasQuestions.load())
    ring();
}

std::shared_ptr<ServerCall> RequestQueue::take() {
  std::scoped_lock Lock(Mutex);
  if (Requests.empty())
    return nullptr;
  std::shared_ptr<ServerCall> First = std::move(Requests.front());
  Requests.pop_front();
  HasQuestions.store(!Requests.empty());
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
  HasQuestions.store(false);
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
  Service.RequestCall(&Context, &Stream, &Queue, &Queue, begin(Arrived));
}

void ServerCall::arrived(bool Ok) {
  if (Ok)
    return Server.hasArrived(shared_from_this());
  // The server is shut down, and what did not begin has no end.
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
  return Box;
}

void ServerCall::read(std::shared_ptr<RequestQueue> Into, bool IsStream) {
  std::scoped_lock Lock(Mutex);
  Box = std::move(Into);
  this->IsStream = IsStream;
  if (!IsStream)
    Box->beginCall();
  readNext();
}

void ServerCall::endUnary() {
  if (Box && !IsStream && !std::exchange(HasEnded, true))
    Box->endCall();
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
    To = Box;
  }
  if (Ok) {
    if (grpc::Status S = To->put(shared_from_this()); !S.ok())
      finish(S);
  } else if (IsStream) {
    To->end();
  } else {
    // Its client has cancelled it.
    std::scoped_lock Lock(Mutex);
    endUnary();
  }
}

void ServerCall::done(bool) {
  // It may have been refused before it had any.
  if (std::shared_ptr<RequestQueue> To = queue(); To && IsStream)
    To->end();
}

void ServerCall::answer(const grpc::ByteBuffer &Message) {
  std::scoped_lock Lock(Mutex);
  Answering.store(true);
  if (!IsStream) {
    HasStatus = true;
    endUnary();
    Stream.WriteAndFinish(Message, grpc::WriteOptions(), grpc::Status::OK,
                          begin(Written));
    return;
  }
  Stream.Write(Message, begin(Written));
  // It is under way already where we speak first.
  if (!IsReading)
    readNext();
}

void ServerCall::hasWritten(bool) {
  Answering.store(false);
  queue()->look();
}

void ServerCall::finish(const grpc::Status &Status) {
  std::scoped_lock Lock(Mutex);
  if (std::exchange(HasStatus, true))
    return;
  endUnary();
  Stream.Finish(Status, begin(Finished));
}
