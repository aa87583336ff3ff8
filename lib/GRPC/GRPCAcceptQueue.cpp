//===- GRPCAcceptQueue.cpp - Sessions from gRPC calls ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCAcceptQueue.h"

#include "GRPC/GRPCProcess.h"
#include "GRPC/GRPCProtocol.h"
#include "Support/Abandon.h"
#include "Support/PrintableText.h"

using namespace MLBridge;
using namespace MLBridge::GRPC;

void PendingSession::refuse(const std::string &Why) const {
  const grpc::Status Refusal(grpc::StatusCode::FAILED_PRECONDITION, Why);
  for (const std::shared_ptr<ServerCall> &Call : Requests->close(Refusal))
    Call->finish(Refusal);
  First->finish(Refusal);
}

Expected<std::unique_ptr<AcceptQueue>>
AcceptQueue::open(const std::string &Address, const Methods &Known,
                  std::string OwnMethod, const CallServer::Options &Options) {
  if (Error E = checkProcess())
    return E;
  Expected<std::shared_ptr<RequestQueueOwner>> Owner =
      RequestQueueOwner::create();
  if (!Owner)
    return Owner.takeError();
  std::unique_ptr<AcceptQueue> Made(
      new AcceptQueue(Known, std::move(OwnMethod), std::move(*Owner)));
  Expected<std::unique_ptr<CallServer>> Calls =
      CallServer::listen(Address, Options, [Q = Made.get()](const auto &Call) {
        Q->receive(Call);
      });
  if (!Calls)
    return Calls.takeError();
  Made->Calls = std::move(*Calls);
  return Made;
}

AcceptQueue::~AcceptQueue() {
  if (Owner->Fork.isForked()) {
    abandon(std::move(Pending));
    abandon(std::move(Calls));
    return;
  }
  // End all pending sessions, because ~CallServer() waits until the last call
  // has ended.
  for (const PendingSession &Session : takePending())
    Session.refuse("the model side is closing");
}

std::vector<PendingSession> AcceptQueue::takePending() {
  Owner->clearDoorbell();
  std::scoped_lock Lock(Mutex);
  return std::exchange(Pending, {});
}

void AcceptQueue::enqueue(PendingSession Session) {
  {
    std::scoped_lock Lock(Mutex);
    Pending.push_back(std::move(Session));
  }
  Owner->ring();
}

void AcceptQueue::receive(const std::shared_ptr<ServerCall> &Call) {
  const bool HasOwn = !OwnMethod.empty();
  const std::string Unary = HasOwn ? OwnMethod : Known.Unary;
  if (Call->method() == Unary)
    return receiveUnary(Call);
  if (!HasOwn && Call->method() == Known.Stream)
    return receiveStream(Call);
  const std::string Stream =
      HasOwn ? std::string() : std::string(Known.Stream) + " or ";
  Call->finish(
      {grpc::StatusCode::UNIMPLEMENTED,
       "expected " + Stream + Unary + ", found " + printable(Call->method())});
}

void AcceptQueue::receiveStream(const std::shared_ptr<ServerCall> &Call) {
  auto Requests = std::make_shared<RequestQueue>(Owner);
  Call->read(Requests, /*IsStream=*/true);
  enqueue({std::move(Requests), Call, Call});
}

/// Adds a unary call to its session. A stock client does not name its session,
/// so all calls of one connection belong to one session.
void AcceptQueue::receiveUnary(const std::shared_ptr<ServerCall> &Call) {
  constexpr std::size_t MaxUnarySessions = 64;
  const std::string Name = Call->metadata(Metadata::Session, Call->peer()) +
                           " " + Call->metadata(Metadata::SerDes, {});
  std::shared_ptr<RequestQueue> Requests;
  bool IsNew = false, HasMany = false;
  {
    std::scoped_lock Lock(Mutex);
    Requests = Unary[Name].lock();
    IsNew = !Requests || Requests->isClosed();
    if (IsNew) {
      Unary[Name] = Requests = std::make_shared<RequestQueue>(Owner);
      std::erase_if(Unary,
                    [](const auto &Entry) { return Entry.second.expired(); });
      HasMany = Unary.size() > MaxUnarySessions;
    }
    // Begin the call before the lock is released. Otherwise, endIdle() could
    // end the session as idle.
    Call->read(Requests, /*IsStream=*/false,
               /*ExpectsOne=*/!OwnMethod.empty());
  }
  if (HasMany)
    endIdle();
  if (IsNew)
    enqueue({std::move(Requests), Call, nullptr});
}

bool AcceptQueue::endIdle() {
  std::scoped_lock Lock(Mutex);
  auto Longest = Unary.end();
  std::optional<Deadline::Clock::time_point> Since;
  for (auto Next = Unary.begin(); Next != Unary.end(); ++Next)
    if (auto Requests = Next->second.lock())
      if (auto Idle = Requests->idleSince();
          Idle && (!Since || *Idle < *Since)) {
        Since = Idle;
        Longest = Next;
      }
  if (Longest == Unary.end())
    return false;
  if (auto Requests = Longest->second.lock())
    Requests->end();
  Unary.erase(Longest);
  return true;
}
