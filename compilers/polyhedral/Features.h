//===- Features.h - What a model sees of a kernel ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Describes a choice by numbers: the strides, the reuse and the footprints of
/// its loops.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_FEATURES_H
#define MLBRIDGE_POLYHEDRAL_FEATURES_H

#include "Scheduler.h"

namespace MLBridge::polyhedral {

/// The numbers that describe a choice. Averages are over all instances of all
/// statements. README.md describes each number.
enum Feature : int {
  Instances,
  Bytes,
  NumStatements,
  IsOriginal,
  IsSeparate,
  Stride0,
  Stride1,
  OtherReads,
  OtherWrites,
  Recurrences,
  Latency,
  Vectorizable,
  Parallel,
  Skewed,
  InnerTrips,
  InverseTrips,
  InverseArea,
  TileLoops,
  NumLoops,
  Cycles,
  MissesL1,
  MissesL2,
  MissesTLB,
  MissesTLB2,
  WriteMissesL1,
  WriteMissesL2,
  StridedMissesL1,
  StridedMissesL2,
  Estimate,
  NumFeatures
};

/// Computes features of the choices about one kernel.
class FeatureExtractor {
public:
  FeatureExtractor(const Kernel &K, const Scheduler &S);

  /// Returns the NumFeatures features of \p C.
  std::vector<float> featuresOf(const Choice &C) const;

  /// A loop around one statement.
  struct Loop {
    /// How far one iteration moves each iterator.
    std::vector<double> Step;
    double Trips = 1;
    /// The number of the loop in its band, or -1 if the band cannot be tiled.
    int Member = -1;
    /// The number of the band.
    int Band = -1;
    bool IsParallel = false;
    bool IsSkewed = false;
  };
  using Nest = std::vector<Loop>;

private:
  const Kernel &Source;
  /// For each schedule and statement, the loops, with the outermost first.
  std::vector<std::vector<Nest>> Nests;
};

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_FEATURES_H
