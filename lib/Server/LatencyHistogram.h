//===- LatencyHistogram.h - The times of requests ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines LatencyHistogram, which counts durations in buckets with a relative
/// width of 1/16. Recording a duration costs a few instructions, and any
/// quantile can be computed from the buckets.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_LATENCYHISTOGRAM_H
#define MLBRIDGE_LIB_SERVER_LATENCYHISTOGRAM_H

#include "MLCompilerBridge/Deadline.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

namespace MLBridge {

/// A histogram of durations. Only one thread may call record(). Any thread may
/// call quantile() at the same time.
class LatencyHistogram {
public:
  void record(Duration Took) {
    auto Value = static_cast<std::uint64_t>(
        std::clamp<Duration::rep>(Took.count(), 0, Largest));
    std::atomic<std::uint64_t> &Bucket = Buckets[indexOf(Value)];
    // An atomic increment is not necessary, because only one thread writes.
    Bucket.store(Bucket.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
  }

  /// Returns the \p Quantile (0 to 1) of the recorded durations, or zero if
  /// none was recorded.
  Duration quantile(double Quantile) const {
    std::uint64_t Total = 0;
    for (const auto &Bucket : Buckets)
      Total += Bucket.load(std::memory_order_relaxed);
    if (Total == 0)
      return Duration::zero();
    auto Left = static_cast<std::uint64_t>(
        std::ceil(std::clamp(Quantile, 0.0, 1.0) * double(Total)));
    std::size_t I = 0;
    for (; I + 1 < Buckets.size(); ++I) {
      std::uint64_t Here = Buckets[I].load(std::memory_order_relaxed);
      if (Here >= Left && Here != 0)
        break;
      Left -= std::min(Left, Here);
    }
    return Duration(static_cast<Duration::rep>(middleOf(I)));
  }

private:
  /// The number of buckets per power of two.
  static constexpr std::size_t Steps = 16;
  static constexpr unsigned StepBits = std::countr_zero(Steps);
  /// One hour in nanoseconds. Longer durations count as one hour.
  static constexpr Duration::rep Largest = 3'600'000'000'000;
  static constexpr unsigned Octaves =
      std::bit_width(std::uint64_t(Largest)) - StepBits;

  static std::size_t indexOf(std::uint64_t Value) {
    if (Value < Steps)
      return Value;
    unsigned Octave = unsigned(std::bit_width(Value)) - StepBits;
    return Octave * Steps + ((Value >> (Octave - 1)) & (Steps - 1));
  }
  static std::uint64_t middleOf(std::size_t Index) {
    if (Index < Steps)
      return Index;
    unsigned Octave = unsigned(Index / Steps);
    std::uint64_t First = (Steps + Index % Steps) << (Octave - 1);
    return First + (std::uint64_t(1) << (Octave - 1)) / 2;
  }

  std::array<std::atomic<std::uint64_t>, (Octaves + 1) * Steps> Buckets{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_LATENCYHISTOGRAM_H
