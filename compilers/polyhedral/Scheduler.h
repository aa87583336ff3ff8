//===- Scheduler.h - Legal orders of a kernel -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds orders of a kernel's statements that respect all dependences, and
/// tiles their loops. Every choice is legal: isl permutes and tiles only loops
/// of one permutable band.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_SCHEDULER_H
#define MLBRIDGE_POLYHEDRAL_SCHEDULER_H

#include "Kernel.h"

namespace MLBridge::polyhedral {

/// The decision about a kernel. It applies to all bands of the schedule. A band
/// with fewer loops uses the first sizes, and keeps the relative order.
struct Choice {
  /// 0: the original order without tiles. 1: isl's schedule. 2: isl's schedule
  /// without fusion.
  int Schedule = 0;
  /// The tile size of each loop of a band, from the outermost. 0: not tiled.
  std::vector<int> Sizes;
  /// The numbers of a band's loops in the order inside a tile, from the
  /// outermost.
  std::vector<int> Order;

  bool operator==(const Choice &) const = default;
};

/// The maximum number of loops in a band.
constexpr int MaxDepth = 6;

/// The schedules of one kernel.
class Scheduler {
public:
  /// Computes the dependences and the schedules. Throws isl::exception.
  explicit Scheduler(const Kernel &K);

  /// The number of schedules, the original order included.
  int numSchedules() const { return static_cast<int>(Schedules.size()) + 1; }
  /// The largest number of loops in a permutable band, or 0 if no band can be
  /// changed.
  int depth(int Schedule) const;
  /// The largest trip count of the loops at each depth.
  const std::vector<std::int64_t> &extents(int Schedule) const {
    return Extents[Schedule - 1];
  }
  /// isl's schedule 1 or 2.
  const isl::schedule &schedule(int Schedule) const {
    return Schedules[Schedule - 1];
  }

  /// Throws UserError unless \p C fits the kernel.
  void check(const Choice &C) const;
  /// Returns the loops of a choice that was checked.
  isl::ast_node loops(const Choice &C) const;

private:
  const Kernel &Source;
  std::vector<isl::schedule> Schedules;
  std::vector<std::vector<std::int64_t>> Extents;
};

/// Returns the pairs of instances whose order must stay. \p Flow receives the
/// pairs in which the second instance reads what the first instance wrote.
isl::union_map dependencesOf(const Kernel &K, isl::union_map &Flow);

/// Returns whether \p Node is a band whose loops may be permuted and tiled.
bool isTilable(const isl::schedule_node &Node);

/// Returns the trip count of the loop \p Member of a band.
std::int64_t tripCount(const isl::schedule_node_band &Band, int Member);

/// Returns \p Order without the numbers from \p Count on.
std::vector<int> shortened(const std::vector<int> &Order, int Count);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_SCHEDULER_H
