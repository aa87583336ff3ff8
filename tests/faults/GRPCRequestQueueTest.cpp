//===- GRPCRequestQueueTest.cpp - Requests between threads ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests that a request queue loses no request and wakes a thread that sleeps
/// on the queue, in whatever order the two threads run.
///
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerCall.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::GRPC;

/// Returns a dummy call. A request queue does not look at calls.
static std::shared_ptr<ServerCall> anyCall() {
  static int Dummy;
  return {std::shared_ptr<int>(), reinterpret_cast<ServerCall *>(&Dummy)};
}

/// Sleeps as a server does. Returns false if the doorbell does not ring for ten
/// seconds.
static bool sleepAt(const RequestQueueOwner &Owner, RequestQueue &Queue) {
  Queue.setSleeping(true);
  pollfd FD{Owner.Doorbell.get(), POLLIN, 0};
  const bool IsQuiet = Queue.isEmpty() && !Queue.hasEnded();
  const int Ready = ::poll(&FD, 1, IsQuiet ? 10'000 : 0);
  Queue.setSleeping(false);
  if (FD.revents != 0)
    Owner.clearDoorbell();
  return Ready > 0 || !IsQuiet;
}

TEST(GRPCRequestQueue, NoRingIsMissed) {
  constexpr int Count = 20'000;
  auto Owner = *RequestQueueOwner::create();
  auto Queue = std::make_shared<RequestQueue>(Owner);
  std::thread GRPC([&] {
    for (int I = 0; I < Count; ++I) {
      ASSERT_TRUE(Queue->put(anyCall()).ok());
      // Pause now and then, so that the other thread falls asleep.
      if (I % 64 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    Queue->end();
  });
  int Taken = 0;
  for (;;) {
    const bool HasEnded = Queue->hasEnded();
    if (Queue->take())
      ++Taken;
    else if (HasEnded)
      break;
    else if (!sleepAt(*Owner, *Queue))
      break;
  }
  GRPC.join();
  EXPECT_EQ(Taken, Count);
}

TEST(GRPCRequestQueue, AClosedQueueAcceptsNothing) {
  auto Queue = std::make_shared<RequestQueue>(*RequestQueueOwner::create());
  ASSERT_TRUE(Queue->put(anyCall()).ok());
  EXPECT_EQ(Queue->close({grpc::StatusCode::ABORTED, "closed"}).size(), 1U);
  EXPECT_TRUE(Queue->isEmpty());
  // A call that is put after close() ends with the same status as the calls
  // that close() returned.
  EXPECT_EQ(Queue->put(anyCall()).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Queue->take(), nullptr);
}

TEST(GRPCRequestQueue, QueuesShareOneDoorbell) {
  auto Owner = *RequestQueueOwner::create();
  RequestQueue First(Owner), Second(Owner);
  auto Rings = [&] {
    pollfd FD{Owner->Doorbell.get(), POLLIN, 0};
    return ::poll(&FD, 1, 0) == 1;
  };
  for (RequestQueue *Queue : {&First, &Second}) {
    ASSERT_TRUE(Queue->put(anyCall()).ok());
    EXPECT_FALSE(Rings()) << "no queue sleeps";
    First.setSleeping(true);
    Second.setSleeping(true);
    ASSERT_TRUE(Queue->put(anyCall()).ok());
    EXPECT_TRUE(Rings());
    Owner->clearDoorbell();
    EXPECT_FALSE(Rings());
    First.setSleeping(false);
    Second.setSleeping(false);
  }
  for (RequestQueue *Queue : {&First, &Second})
    Queue->close({});
}

TEST(GRPCRequestQueue, IsIdleWithoutACall) {
  RequestQueue Queue(*RequestQueueOwner::create());
  EXPECT_TRUE(Queue.idleSince());
  Queue.beginCall();
  Queue.beginCall();
  EXPECT_FALSE(Queue.idleSince());
  Queue.endCall();
  EXPECT_FALSE(Queue.idleSince());
  const auto Before = Deadline::Clock::now();
  Queue.endCall();
  ASSERT_TRUE(Queue.idleSince());
  EXPECT_GE(*Queue.idleSince(), Before);
}
