//===- AdaptiveWait.h - Spin while it pays, then sleep ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AdaptiveWait: decides between spinning and sleeping, for all transports.
/// Waking a sleeping core costs more than any copy: 12-25 us each way, against
/// 0.2-2 us when the waiter spins. But a failed spin on a shared core costs the
/// peer its time slice. So: probe for up to 50 us, and after a failed probe
/// skip 1, 3, 7, ... 1023 waits before the next one. A peer that becomes fast
/// again resets the skip count at the next probe.
///
/// It never calls sched_yield: next to one busy process that costs a full time
/// slice (4 ms) per wait.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H
#define MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace MLBridge {

/// Tells the processor that the caller is in a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The spin history of one direction of one channel.
class AdaptiveWait {
public:
  /// Long enough to cover one cold wake-up of the peer, so that spinning can
  /// succeed again.
  static constexpr std::chrono::microseconds Budget{50};
  static constexpr std::uint32_t MaxSkip = 1023;

  /// Calls \p Ready (cheap, and free of side effects when it returns false,
  /// such as a non-blocking read) until it returns true or the budget is used
  /// up. Returns false if the caller should sleep until its deadline. The clock
  /// is read once per \p ProbesPerClock calls, for probes cheaper than a clock
  /// read.
  template <typename Probe>
  bool spin(Probe &&Ready, unsigned ProbesPerClock = 4) {
    if (Left != 0) {
      --Left;
      return false;
    }
    // Immediate success proves nothing about spinning: on a shared core, the
    // peer ran while this thread did not.
    if (Ready())
      return true;
    using Clock = std::chrono::steady_clock;
    // Do not read the clock before the first probes: it would delay a quick
    // reply.
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
