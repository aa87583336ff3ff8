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
// Mailbox
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<MailboxOwner>> MailboxOwner::create() {
  auto Made = std::make_shared<MailboxOwner>();
  Made->Doorbell = posix::UniqueFD(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!Made->Doorbell)
    return Error::fromErrno(errno, "cannot make an eventfd");
  return Made;
}

void MailboxOwner::ring() const {
  const std::uint64_t Ring = 1;
  // It cannot be full: each sleep is rung for once by each mailbox.
  (void)!::write(Doorbell.get(), &Ring, sizeof(Ring));
}

void MailboxOwner::hearRings() const {
  std::uint64_t Rings;
  (void)!::read(Doorbell.get(), &Rings, sizeof(Rings));
}

/// The flags are sequentially consistent: who sets Sleeps looks at the mailbox
/// after it, and who changes the mailbox looks at Sleeps after that.
void Mailbox::ring() {
  if (Sleeps.exchange(false))
    Owner->ring();
}

grpc::Status Mailbox::put(std::shared_ptr<ServerCall> From) {
  {
    std::scoped_lock Lock(Mutex);
    if (IsClosed)
      return ClosedBecause;
    Questions.push_back(std::move(From));
    HasQuestions.store(true);
  }
  ring();
  return grpc::Status::OK;
}

void Mailbox::endCall() {
  LastEnd.store(Deadline::Clock::now());
  --Unanswered;
}

std::optional<Deadline::Clock::time_point> Mailbox::idleSince() const {
  if (Unanswered.load() != 0)
    return std::nullopt;
  return LastEnd.load();
}

void Mailbox::end() {
  HasEnded.store(true);
  ring();
}

void Mailbox::look() {
  if (HasQuestions.load())
    ring();
}

std::shared_ptr<ServerCall> Mailbox::take() {
  std::scoped_lock Lock(Mutex);
  if (Questions.empty())
    return nullptr;
  std::shared_ptr<ServerCall> First = std::move(Questions.front());
  Questions.pop_front();
  HasQuestions.store(!Questions.empty());
  return First;
}

bool Mailbox::isClosed() {
  std::scoped_lock Lock(Mutex);
  return IsClosed;
}

std::deque<std::shared_ptr<ServerCall>>
Mailbox::close(const grpc::Status &Why) {
  std::scoped_lock Lock(Mutex);
  IsClosed = true;
  ClosedBecause = Why;
  HasQuestions.store(false);
  return std::exchange(Questions, {});
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
    return Listener.hasArrived(shared_from_this());
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

std::shared_ptr<Mailbox> ServerCall::mailbox() {
  std::scoped_lock Lock(Mutex);
  return Box;
}

void ServerCall::read(std::shared_ptr<Mailbox> Into, bool IsStream) {
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
  Stream.Read(&Question, begin(Read));
}

void ServerCall::hasRead(bool Ok) {
  std::shared_ptr<Mailbox> To;
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
  if (std::shared_ptr<Mailbox> To = mailbox(); To && IsStream)
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
  mailbox()->look();
}

void ServerCall::finish(const grpc::Status &Status) {
  std::scoped_lock Lock(Mutex);
  if (std::exchange(HasStatus, true))
    return;
  endUnary();
  Stream.Finish(Status, begin(Finished));
}
