//===- AllocationSearch.h - The best allocation of each function -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationSearch tries several policies on each function and chooses the one
/// with the lowest cost. Since LLVM's greedy allocator is one of them, no
/// function becomes worse.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/AllocationCost.h"
#include "RegAlloc/RegAllocOptions.h"

#include <chrono>
#include <optional>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace MLBridge {

class AllocationSearch {
public:
  /// Searches functions of modules that \p Target compiles.
  explicit AllocationSearch(const llvm::TargetMachine &Target);

  void beginModule();
  /// Prints statistics and remarks.
  void endModule(const llvm::Module &M);

  /// Returns the best policy for a function. In a trial's process, returns the
  /// policy that is tried.
  FixedPolicy choose(const AllocationContext &Context);

  /// Takes the cost of the function for which choose() was called last. Does
  /// not return in a trial's process.
  void finish(const llvm::MachineFunction &MF, const AllocationCost &Cost);

private:
  /// Returns why functions must not be searched, or an empty string.
  std::string whyNot() const;
  std::chrono::milliseconds timeForTrial() const;

  const llvm::TargetMachine &Target;
  std::chrono::steady_clock::time_point Begin;
  /// In a trial's process: the pipe to the compiler. Otherwise -1.
  int Pipe = -1;
  /// The cost of the chosen trial.
  std::optional<AllocationCost> Expected;

  std::string Refused;
  unsigned Searched = 0;
  unsigned Easy = 0;
  unsigned Improved = 0;
  unsigned FailedTrials = 0;
  unsigned Differing = 0;
  bool OutOfTime = false;
  double GreedyCost = 0;
  double BestCost = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
