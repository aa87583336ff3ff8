//===- AdaptiveWait.h - Spins for a short time, then sleeps -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines AdaptiveWait, which decides for all transports whether a waiting
/// thread spins or sleeps. A sleeping thread sees a message 12-25 us late,
/// because waking its core takes that long. A spinning thread sees a message
/// after 0.2-2 us. But a thread that spins on the peer's core delays the peer
/// by a time slice.
///
/// Therefore, a thread spins for up to 50 us. After an unsuccessful spin, the
/// next wait sleeps without spinning. After further unsuccessful spins, the
/// next 3, 7, ..., and at most 1023 waits sleep immediately. A successful spin
/// resets this number to 0.
///
/// AdaptiveWait never calls sched_yield, because each call costs a full time
/// slice (4 ms) if another process is busy on the core.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H
#define MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace MLBridge {

/// Informs the processor that the caller is in a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins or declines to spin, depending on the earlier waits. Each direction of
/// a channel needs a separate object.
class AdaptiveWait {
public:
  /// The maximum time of one spin. A sleeping peer needs less time to wake up.
  /// Therefore, a spin can succeed even if the peer was asleep.
  static constexpr std::chrono::microseconds Budget{50};
  static constexpr std::uint32_t MaxSkip = 1023;

  /// Calls \p Ready until it returns true or Budget has passed. Returns false
  /// if the caller should sleep until its deadline. \p Ready, for example a
  /// non-blocking read, must be cheap and must have no side effects if it
  /// returns false. The clock is read once per \p ProbesPerClock calls, because
  /// \p Ready may be cheaper than reading the clock.
  template <typename Probe>
  bool spin(Probe &&Ready, unsigned ProbesPerClock = 4) {
    if (Left != 0) {
      --Left;
      return false;
    }
    // Do not reset Skip here. Immediate success does not show that spinning
    // helps: on a shared core, the peer ran before this thread did.
    if (Ready())
      return true;
    using Clock = std::chrono::steady_clock;
    // Read the clock only after the first probes, so that a quick reply is not
    // delayed.
    std::optional<Clock::time_point> End;
    for (;;) {
      for (unsigned I = 0; I < ProbesPerClock; ++I)
        if (Ready()) {
          Skip = 0;
          return true;
        }
      Clock::time_point Now = Clock::now();
      if (!End)
        End = Now + Budget;
      else if (Now >= *End)
        break;
    }
    Skip = std::min(2 * Skip + 1, MaxSkip);
    Left = Skip;
    return false;
  }

private:
  std::uint32_t Skip = 0;
  std::uint32_t Left = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H
