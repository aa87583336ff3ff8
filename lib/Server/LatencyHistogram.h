//===- LatencyHistogram.h - How long requests take --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LatencyHistogram: durations in buckets of a 16th of their size, so that any
/// quantile is at hand and a record costs a few instructions.
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

/// One thread records, any may look.
class LatencyHistogram {
public:
  void record(Duration Took) {
    auto Value = static_cast<std::uint64_t>(
        std::clamp<Duration::rep>(Took.count(), 0, Largest));
    std::atomic<std::uint64_t> &Bucket = Buckets[indexOf(Value)];
    // There is one writer only: no need to lock the bus.
    Bucket.store(Bucket.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
  }

  /// The value below which \p Quantile (0 to 1) of all lie; zero when nothing
  /// was recorded.
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
  /// Each power of two has so many buckets.
  static constexpr std::size_t Steps = 16;
  static constexpr unsigned StepBits = std::countr_zero(Steps);
  /// An hour; nobody asks how much longer it was.
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
