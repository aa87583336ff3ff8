//===- AllocationSearch.h - The best of several policies --------*- C++ -*-===//
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

#include "RegAlloc/AllocationDriver.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace MLBridge {

class AllocationSearch final : public AllocationDriver {
public:
  /// Searches functions of modules that \p Target compiles.
  explicit AllocationSearch(const llvm::TargetMachine &Target)
      : Target(Target) {}

  void beginModule(llvm::Module &M) override;
  void expectCosts() override { Found.IsMeasured = true; }
  /// Tries policies and returns the best. In a trial's process, returns the
  /// policy that is tried.
  std::unique_ptr<AllocationPolicy>
  begin(const AllocationContext &Context) override;
  /// Compares the cost with the trial's.
  void finish(const llvm::MachineFunction &MF,
              const AllocationCost &Cost) override;
  void endModule(const llvm::Module &M) override;
  bool needsAllocator() const override { return true; }
  llvm::ArrayRef<TriedPolicy> trials() const override { return Trials; }

private:
  /// Returns costWithFreeColours(), or std::nullopt if the function is not
  /// searched. Before the first search, loads the models of \p Tried.
  std::optional<double> prepare(const AllocationContext &Context,
                                llvm::ArrayRef<FunctionPolicy> Tried);
  const FunctionPolicy &choose(const AllocationContext &Context);
  /// Returns why functions must not be searched, or an empty string.
  std::string whyNot() const;
  std::chrono::milliseconds timeForTrial() const;

  /// What has happened in a module.
  struct ModuleResult {
    std::chrono::steady_clock::time_point Begin =
        std::chrono::steady_clock::now();
    /// True if finish() will be called.
    bool IsMeasured = false;
    /// Why functions are not searched, or an empty string.
    std::string Refused;
    /// The number of functions that were searched, in which all ranges find
    /// free registers, and in which greedy is not the best policy.
    unsigned Searched = 0, Easy = 0, Improved = 0;
    /// The number of trials that failed, and that were predicted not to gain.
    unsigned FailedTrials = 0, Skipped = 0;
    /// The number of functions whose final cost is not the trial's.
    unsigned Differing = 0;
    bool OutOfTime = false;
    /// Sums over the searched functions.
    double GreedyCost = 0, BestCost = 0;
  };

  const llvm::TargetMachine &Target;
  std::unique_ptr<ModulePolicies> Policies;
  std::vector<TriedPolicy> Trials;
  /// In a trial's process: the pipe to the compiler. Otherwise -1.
  int Pipe = -1;
  /// In the trial of greedy: the model whose decisions are compared with
  /// LLVM's.
  AdvisorModel *ToCompare = nullptr;
  std::optional<AllocationCost> ChosenCost;
  ModuleResult Found;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
