//===- GRPCProcess.cpp - Checks that gRPC can work ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCProcess.h"

#include "Support/ForkDetector.h"
#include "Support/Posix.h"

#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

using namespace MLBridge;

static Error checkFork() {
  // Use one object for the process, because gRPC has one state for the process.
  // Do not use gRPC's function that returns whether gRPC is in use. It acquires
  // a lock, which may stay locked forever in a forked child. Never destroy the
  // object, because runners may outlive static objects.
  static const ForkDetector &FirstUse = *new ForkDetector();
  if (!FirstUse.isForked())
    return Error::success();
  return {ErrorCode::Unsupported,
          "this process was forked from one that used gRPC, and gRPC does not "
          "work in a forked child: start the child with exec (Python's "
          "multiprocessing: the method 'spawn'), fork before the first use of "
          "grpc:, or use pipe: or shm:, which survive a fork"};
}

static Error checkDescriptors() {
  // gRPC opens five descriptors for itself and one or two for each connection.
  // Resolving a host name needs some more.
  constexpr std::size_t Needed = 12;
  const std::size_t Free = posix::countFreeDescriptors(Needed);
  if (Free == Needed)
    return Error::success();
  return {ErrorCode::System,
          "gRPC needs " + std::to_string(Needed) +
              " descriptors, but this process may open only " +
              std::to_string(Free) + " more (ulimit -n)"};
}

static Error checkAddressSpace() {
  rlimit Limit{};
  if (::getrlimit(RLIMIT_AS, &Limit) != 0 || Limit.rlim_cur == RLIM_INFINITY)
    return Error::success();
  // These numbers sufficed for clients and servers in experiments. gRPC must be
  // able to start all its threads. Otherwise, its shutdown waits forever for
  // the missing thread.
  constexpr std::size_t Threads = 8;
  constexpr std::size_t Others = std::size_t(16) << 20;
  std::size_t StackSize = std::size_t(8) << 20;
  pthread_attr_t Attributes;
  if (::pthread_attr_init(&Attributes) == 0) {
    ::pthread_attr_getstacksize(&Attributes, &StackSize);
    ::pthread_attr_destroy(&Attributes);
  }
  const std::size_t Needed = Threads * StackSize + Others;
  void *Room = ::mmap(nullptr, Needed, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (Room != MAP_FAILED) {
    ::munmap(Room, Needed);
    return Error::success();
  }
  return {ErrorCode::System,
          "gRPC needs " + std::to_string(Needed >> 20) +
              " MiB of address space for its threads, but this process has "
              "less left (ulimit -v)"};
}

static Error checkThreads() {
  // gRPC 1.51 waits forever for a thread that it could not start, even during
  // its shutdown. In experiments, this number of threads sufficed for clients
  // and servers.
  constexpr std::size_t Threads = 10;
  std::mutex AllStarted;
  std::unique_lock Lock(AllStarted);
  auto Main = [](void *Mutex) -> void * {
    const std::scoped_lock Wait(*static_cast<std::mutex *>(Mutex));
    return nullptr;
  };
  pthread_t Started[Threads];
  std::size_t Count = 0;
  int Why = 0;
  for (; Count < Threads; ++Count) {
    Why = ::pthread_create(&Started[Count], nullptr, Main, &AllStarted);
    if (Why != 0)
      break;
  }
  Lock.unlock();
  for (std::size_t I = 0; I < Count; ++I)
    ::pthread_join(Started[I], nullptr);
  if (Count == Threads)
    return Error::success();
  return Error::fromErrno(Why,
                          "gRPC needs " + std::to_string(Threads) +
                              " threads, but this process may start only " +
                              std::to_string(Count) +
                              " more (ulimit -u, or a container's limit "
                              "on processes)");
}

Error GRPC::checkProcess() {
  if (Error E = checkFork())
    return E;
  if (Error E = checkDescriptors())
    return E;
  if (Error E = checkAddressSpace())
    return E;
  return checkThreads();
}
