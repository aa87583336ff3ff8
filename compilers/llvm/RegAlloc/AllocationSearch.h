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
#include "RegAlloc/FunctionPolicy.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace MLBridge {

class AllocationSearch {
public:
  /// Searches functions of modules that \p Target compiles.
  explicit AllocationSearch(const llvm::TargetMachine &Target)
      : Target(Target) {}

  /// Must be called before the first function of a module. \p Policies must
  /// stay valid until endModule().
  void beginModule(ModulePolicies &Policies);
  /// Prints statistics and remarks.
  void endModule(const llvm::Module &M);

  /// Returns the best policy for a function. In a trial's process, returns the
  /// policy that is tried.
  const FunctionPolicy &choose(const AllocationContext &Context);

  /// Takes the cost of a function. If choose() was called for it, compares the
  /// cost with the trial's. Does not return in a trial's process.
  void finish(const llvm::MachineFunction &MF, const AllocationCost &Cost);

  /// The result of a policy on the function that choose() was last called for.
  struct TriedPolicy {
    const FunctionPolicy *Policy;
    /// None if the trial failed.
    std::optional<AllocationCost> Cost;
  };
  llvm::ArrayRef<TriedPolicy> trials() const { return Trials; }

private:
  /// Returns why functions must not be searched, or an empty string.
  std::string whyNot() const;
  std::chrono::milliseconds timeForTrial() const;

  /// What has happened in a module.
  struct ModuleResult {
    std::chrono::steady_clock::time_point Begin =
        std::chrono::steady_clock::now();
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

  const llvm::TargetMachine &Target;
  ModulePolicies *Policies = nullptr;
  std::vector<TriedPolicy> Trials;
  /// In a trial's process: the pipe to the compiler. Otherwise -1.
  int Pipe = -1;
  /// The cost of the chosen trial.
  std::optional<AllocationCost> Expected;
  ModuleResult Found;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
