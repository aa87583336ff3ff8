//===- AdaptiveWait.h - Spin while it pays, else sleep ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AdaptiveWait: the one place that decides between spinning and sleeping, for
/// all transports. Waking a sleeping core costs more than any copy: 12-25 us
/// each way, against 0.2-2 us when the waiter spins. But a spin that fails on
/// a shared core costs the peer its time slice. So: probe for up to 50 us, and
/// after a fruitless probe skip 1, 3, 7, ... 1023 waits before the next one.
/// A pair that answers fast finds its way back by itself.
///
/// It never calls sched_yield: with one busy neighbour that costs a full slice
/// (4 ms) a wait.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H
#define MLCOMPILERBRIDGE_TRANSPORT_ADAPTIVEWAIT_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace MLBridge {

/// Tells the processor that the caller spins on memory.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The memory of one direction of one channel.
class AdaptiveWait {
public:
  /// Long enough to cover one cold wake-up of the peer, so that a pair
  /// re-enters the fast mode.
  static constexpr std::chrono::microseconds Budget{50};
  static constexpr std::uint32_t MaxSkip = 1023;

  /// Probes \p Ready (cheap, side-effect free on false, such as a
  /// non-blocking read) until it returns true or the budget is used up. False:
  /// the caller should sleep until its deadline. \p ProbesPerClock spares
  /// clock reads where a probe is cheaper than one.
  template <typename Probe>
  bool spin(Probe &&Ready, unsigned ProbesPerClock = 4) {
    if (Left != 0) {
      --Left;
      return false;
    }
    // What was there before the wait began shows nothing: on a shared core, it
    // came while we were not running.
    if (Ready())
      return true;
    using Clock = std::chrono::steady_clock;
    // The clock is read between probes only, and not before the first: an
    // answer that is quick should not wait for it.
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
