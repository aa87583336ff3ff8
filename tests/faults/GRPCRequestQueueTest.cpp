//===- GRPCRequestQueueTest.cpp - From gRPC's thread to the server's
//-----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// No request that is put into a request queue is lost, and whoever sleeps at
/// it is woken, whatever the two threads do at the same moment.
///
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerCall.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::GRPC;

/// Something to put in: a request queue does not look at calls.
static std::shared_ptr<ServerCall> anyCall() {
  static int Dummy;
  return {std::shared_ptr<int>(), reinterpret_cast<ServerCall *>(&Dummy)};
}

/// As a server does it; false when nobody rings for ten seconds.
static bool sleepAt(const RequestQueueOwner &Owner, RequestQueue &Box) {
  Box.setSleeping(true);
  pollfd FD{Owner.Doorbell.get(), POLLIN, 0};
  const bool IsQuiet = Box.isEmpty() && !Box.hasEnded();
  const int Ready = ::poll(&FD, 1, IsQuiet ? 10'000 : 0);
  Box.setSleeping(false);
  if (FD.revents != 0)
    Owner.clearDoorbell();
  return Ready > 0 || !IsQuiet;
}

TEST(GRPCRequestQueue, NoRingIsMissed) {
  constexpr int Count = 20'000;
  auto Owner = *RequestQueueOwner::create();
  auto Box = std::make_shared<RequestQueue>(Owner);
  std::thread GRPC([&] {
    for (int I = 0; I < Count; ++I) {
      ASSERT_TRUE(Box->put(anyCall()).ok());
      // Now and then the other thread gets to sleep.
      if (I % 64 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    Box->end();
  });
  int Taken = 0;
  for (;;) {
    const bool HasEnded = Box->hasEnded();
    if (Box->take())
      ++Taken;
    else if (HasEnded)
      break;
    else if (!sleepAt(*Owner, *Box))
      break;
  }
  GRPC.join();
  EXPECT_EQ(Taken, Count);
}

TEST(GRPCRequestQueue, AClosedOneTakesNothing) {
  auto Box = std::make_shared<RequestQueue>(*RequestQueueOwner::create());
  ASSERT_TRUE(Box->put(anyCall()).ok());
  EXPECT_EQ(Box->close({grpc::StatusCode::ABORTED, "closed"}).size(), 1U);
  EXPECT_TRUE(Box->isEmpty());
  // What comes too late ends as those did that came in time.
  EXPECT_EQ(Box->put(anyCall()).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Box->take(), nullptr);
}

TEST(GRPCRequestQueue, ManyShareOneDoorbell) {
  auto Owner = *RequestQueueOwner::create();
  RequestQueue First(Owner), Second(Owner);
  auto Rings = [&] {
    pollfd FD{Owner->Doorbell.get(), POLLIN, 0};
    return ::poll(&FD, 1, 0) == 1;
  };
  for (RequestQueue *Box : {&First, &Second}) {
    ASSERT_TRUE(Box->put(anyCall()).ok());
    EXPECT_FALSE(Rings()) << "nobody sleeps";
    First.setSleeping(true);
    Second.setSleeping(true);
    ASSERT_TRUE(Box->put(anyCall()).ok());
    EXPECT_TRUE(Rings());
    Owner->clearDoorbell();
    EXPECT_FALSE(Rings());
    First.setSleeping(false);
    Second.setSleeping(false);
  }
  for (RequestQueue *Box : {&First, &Second})
    Box->close({});
}

TEST(GRPCRequestQueue, IsIdleWhileNoCallIsUnderWay) {
  RequestQueue Box(*RequestQueueOwner::create());
  EXPECT_TRUE(Box.idleSince());
  Box.beginCall();
  Box.beginCall();
  EXPECT_FALSE(Box.idleSince());
  Box.endCall();
  EXPECT_FALSE(Box.idleSince());
  const auto Before = Deadline::Clock::now();
  Box.endCall();
  ASSERT_TRUE(Box.idleSince());
  EXPECT_GE(*Box.idleSince(), Before);
}
