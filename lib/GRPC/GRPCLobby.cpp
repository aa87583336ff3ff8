//===- GRPCLobby.cpp - From calls to sessions -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCLobby.h"

#include "GRPC/GRPCProtocol.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

void Arrival::refuse(const std::string &Why) const {
  const grpc::Status Refusal(grpc::StatusCode::FAILED_PRECONDITION, Why);
  for (const std::shared_ptr<ServerCall> &Asking : Box->close(Refusal))
    Asking->finish(Refusal);
  First->finish(Refusal);
}

Expected<std::unique_ptr<Lobby>> Lobby::open(const std::string &Address,
                                             const Methods &Known,
                                             const Listener::Options &Options) {
  posix::UniqueFD Doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!Doorbell)
    return Error::fromErrno(errno, "cannot make an eventfd");
  std::unique_ptr<Lobby> Made(new Lobby(Known, std::move(Doorbell)));
  Expected<std::unique_ptr<Listener>> Calls =
      Listener::listen(Address, Options, [L = Made.get()](const auto &Call) {
        L->receive(Call);
      });
  if (!Calls)
    return Calls.takeError();
  Made->Calls = std::move(*Calls);
  return Made;
}

Lobby::~Lobby() {
  // The listener waits for the last call to go.
  for (const Arrival &Who : takeArrivals())
    Who.refuse("the model side is closing");
}

std::vector<Arrival> Lobby::takeArrivals() {
  std::uint64_t Rings;
  if (::read(Doorbell.get(), &Rings, sizeof(Rings)) < 0)
    return {};
  std::scoped_lock Lock(Mutex);
  return std::exchange(Arrivals, {});
}

void Lobby::announce(Arrival Who) {
  {
    std::scoped_lock Lock(Mutex);
    Arrivals.push_back(std::move(Who));
  }
  const std::uint64_t Ring = 1;
  (void)!::write(Doorbell.get(), &Ring, sizeof(Ring));
}

void Lobby::receive(const std::shared_ptr<ServerCall> &Call) {
  Error Failure;
  if (Call->method() == Known.Unary)
    Failure = receiveUnary(Call);
  else if (Call->method() == Known.Stream)
    Failure = receiveStream(Call);
  else
    return Call->finish({grpc::StatusCode::UNIMPLEMENTED,
                         std::string("expected ") + Known.Stream + " or " +
                             Known.Unary + ", found " + Call->method()});
  // Out of descriptors: it may come back.
  if (Failure)
    Call->finish({grpc::StatusCode::UNAVAILABLE, Failure.message()});
}

Error Lobby::receiveStream(const std::shared_ptr<ServerCall> &Call) {
  Expected<std::shared_ptr<Mailbox>> Box = Mailbox::create();
  if (!Box)
    return Box.takeError();
  Call->read(*Box, /*IsStream=*/true);
  announce({std::move(*Box), Call, Call});
  return Error::success();
}

/// Stock clients give their sessions no name; then it is their connection's.
Error Lobby::receiveUnary(const std::shared_ptr<ServerCall> &Call) {
  const std::string Name = Call->metadata(Metadata::Session, Call->peer()) +
                           " " + Call->metadata(Metadata::SerDes, {});
  std::erase_if(Unary,
                [](const auto &Known) { return Known.second.expired(); });
  std::shared_ptr<Mailbox> Box = Unary[Name].lock();
  const bool IsNew = !Box || Box->isClosed();
  if (IsNew) {
    Expected<std::shared_ptr<Mailbox>> Made = Mailbox::create();
    if (!Made)
      return Made.takeError();
    Unary[Name] = Box = std::move(*Made);
  }
  Call->read(Box, /*IsStream=*/false);
  if (IsNew)
    announce({std::move(Box), Call, nullptr});
  return Error::success();
}
