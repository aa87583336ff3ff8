//===- GRPCCompletions.cpp - The pending operations of a client -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCCompletions.h"

#include "GRPC/GRPCClock.h"

using namespace MLBridge;
using namespace MLBridge::GRPC;

Completions::~Completions() {
  drain(Deadline::never());
  Queue.Shutdown();
  void *Tag;
  bool Ok;
  while (Queue.Next(&Tag, &Ok))
    ;
}

bool Completions::take(gpr_timespec Until) {
  void *Tag;
  bool Ok;
  if (Queue.AsyncNext(&Tag, &Ok, Until) != grpc::CompletionQueue::GOT_EVENT)
    return false;
  const unsigned Which = bit(Operation(reinterpret_cast<std::uintptr_t>(Tag)));
  Pending &= ~Which;
  if (Ok)
    Succeeded |= Which;
  return true;
}

bool Completions::wait(Operation Which, Deadline Until) {
  while (isPending(Which))
    if (!take(timeOf(Until.nextLook())) && Until.expired())
      break;
  return !isPending(Which);
}

void Completions::poll() {
  while (take(atOnce()))
    ;
}

bool Completions::waitForPeer(Operation Which, Deadline Until) {
  auto Probe = [&] {
    poll();
    return !isPending(Which);
  };
  return Spin.spin(Probe, /*ProbesPerClock=*/1) || wait(Which, Until);
}

bool Completions::drain(Deadline Until) {
  while (Pending != 0)
    if (!take(timeOf(Until)) && Until.expired())
      break;
  return Pending == 0;
}
