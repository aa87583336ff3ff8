//===- FutexFloor.h - The floor of a round trip in memory -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FutexFloor makes the fastest possible round trips through shared memory, for
/// comparison with the shared memory runner. Like the runner, it copies each
/// message into shared memory once and wakes the other end with a futex. Both
/// ends sleep while they wait. RttClient.cpp uses the client's end, and
/// FloorModule.cpp uses the model's end.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_FUTEXFLOOR_H
#define MLCOMPILERBRIDGE_BENCHMARKS_FUTEXFLOOR_H

#include "PipeFloor.h"

#include <atomic>
#include <climits>
#include <linux/futex.h>
#include <memory>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace MLBridge::bench {

/// Maps the shared memory of a file descriptor. The caller owns the descriptor.
class FutexFloor {
public:
  /// Maps the memory. Returns null if the mapping fails.
  static std::unique_ptr<FutexFloor> map(int Memory) {
    void *Address = ::mmap(nullptr, Size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_POPULATE, Memory, 0);
    if (Address == MAP_FAILED)
      return nullptr;
    return std::unique_ptr<FutexFloor>(
        new FutexFloor(static_cast<Words *>(Address)));
  }
  FutexFloor(const FutexFloor &) = delete;
  FutexFloor &operator=(const FutexFloor &) = delete;
  ~FutexFloor() { ::munmap(Shared, Size); }

  /// Sends \p Features and receives \p Reply. Returns false if no reply arrives
  /// within a second.
  bool ask(Span<const float> Features, float &Reply) {
    std::memcpy(Shared->Features, Features.data(),
                Features.size() * sizeof(float));
    Shared->Count = Features.size();
    post(Shared->Request, ++Last);
    if (!await(Shared->Reply, Last))
      return false;
    Reply = Shared->Value;
    return true;
  }

  /// Answers the next request with the request's last feature value. Returns
  /// false if no request arrives within a second.
  bool serve() {
    if (!await(Shared->Request, Last + 1))
      return false;
    ++Last;
    Shared->Value = Shared->Features[Shared->Count - 1];
    post(Shared->Reply, Last);
    return true;
  }

  static constexpr std::size_t MaxLength = FloorFrames::MaxLength;

private:
  struct Words {
    alignas(64) std::atomic<std::uint32_t> Request;
    std::uint64_t Count;
    alignas(64) std::atomic<std::uint32_t> Reply;
    float Value;
    alignas(64) float Features[MaxLength];
  };
  static constexpr std::size_t Size = sizeof(Words);

  explicit FutexFloor(Words *Shared) : Shared(Shared) {}

  static long futex(std::atomic<std::uint32_t> &Word, int What,
                    std::uint32_t Value, const timespec *Wait) {
    return ::syscall(SYS_futex, &Word, What, Value, Wait, nullptr, 0);
  }
  static void post(std::atomic<std::uint32_t> &Word, std::uint32_t Value) {
    Word.store(Value, std::memory_order_release);
    futex(Word, FUTEX_WAKE, INT_MAX, nullptr);
  }
  static bool await(std::atomic<std::uint32_t> &Word, std::uint32_t Value) {
    while (true) {
      std::uint32_t Now = Word.load(std::memory_order_acquire);
      if (Now == Value)
        return true;
      timespec OneSecond{1, 0};
      if (futex(Word, FUTEX_WAIT, Now, &OneSecond) != 0 && errno == ETIMEDOUT)
        return false;
    }
  }

  Words *Shared;
  std::uint32_t Last = 0;
};

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_FUTEXFLOOR_H
