//===- PerProcessTest.cpp - Objects that children do not share ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/PerProcess.h"
#include "support/Child.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace MLBridge;

namespace {
/// Ends the process if another process made the object.
struct Counted {
  ~Counted() {
    if (::getpid() != Maker)
      ::_exit(9);
  }
  const pid_t Maker = ::getpid();
  std::mutex Mutex;
  int Count = 0;
};
} // namespace

TEST(PerProcess, EachProcessHasItsOwn) {
  PerProcess<Counted> Object;
  EXPECT_EQ(++Object.get().Count, 1);
  EXPECT_EQ(++Object.get().Count, 2);
  // In a child, no thread would release this lock, so the child needs its own
  // object.
  const std::scoped_lock Lock(Object.get().Mutex);
  test::Child Forked([&] {
    const std::scoped_lock Own(Object.get().Mutex);
    if (++Object.get().Count != 1)
      return 1;
    test::Child Grandchild([&] { return ++Object.get().Count == 1 ? 0 : 1; });
    if (Grandchild.wait() != 0)
      return 2;
    return ++Object.get().Count == 2 ? 0 : 3;
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_EQ(Object.get().Count, 2);
}

TEST(PerProcess, IsDestroyedOnlyByItsMaker) {
  auto Object = std::make_unique<PerProcess<Counted>>();
  test::Child Untouched([&] {
    Object.reset();
    return 0;
  });
  EXPECT_EQ(Untouched.wait(), 0);
  test::Child Used([&] {
    Object->get();
    Object.reset();
    return 0;
  });
  EXPECT_EQ(Used.wait(), 0);
}

TEST(PerProcess, ThreadsOfAChildAgree) {
  PerProcess<Counted> Object;
  test::Child Forked([&] {
    std::vector<Counted *> Seen(8);
    std::vector<std::thread> Threads;
    for (Counted *&Mine : Seen)
      Threads.emplace_back([&] { Mine = &Object.get(); });
    for (std::thread &Thread : Threads)
      Thread.join();
    for (const Counted *Mine : Seen)
      if (Mine != Seen.front())
        return 1;
    return 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
}
