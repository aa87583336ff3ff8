//===- AllocationSearch.h - The best of several policies --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationSearch tries several policies on each function and chooses the
/// policy with the lowest cost. LLVM's greedy allocator is one of these
/// policies, so no function becomes worse.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H

#include "RegAlloc/AllocationDriver.h"
#include "RegAlloc/TrialProcess.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

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
  /// Tries policies and returns the best one. In a trial's process, returns the
  /// policy to try.
  std::unique_ptr<AllocationPolicy>
  begin(const AllocationContext &Context) override;
  /// Compares the cost with the cost in the trial. A trial's process ends here.
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
  /// Returns the reason why no function may be searched, or an empty string.
  std::string whyNot() const;
  std::chrono::milliseconds timeForTrial() const;
  /// In a trial's process, returns the outcome to send to the compiler.
  TrialOutcome outcome(const AllocationCost &Cost) const;
  /// Returns true if \p Result is an outcome in which no model failed.
  /// Otherwise reports the failure. \p Deciding is the policy whose models the
  /// trial has used. \p ByGreedy is true if greedy has decided.
  bool accept(const Trial &Result, const FunctionPolicy &Deciding,
              bool ByGreedy, std::chrono::milliseconds Limit,
              llvm::StringRef Function);

  struct ModuleResult {
    std::chrono::steady_clock::time_point Begin =
        std::chrono::steady_clock::now();
    /// True if finish() will be called.
    bool IsMeasured = false;
    /// The reason why functions are not searched, or an empty string.
    std::string Refused;
    /// Counts of functions. In an easy function, all ranges find free
    /// registers. In an improved function, another policy is better than
    /// greedy.
    unsigned Searched = 0, Easy = 0, Improved = 0;
    /// The numbers of failed trials and of trials that a prediction excluded.
    unsigned FailedTrials = 0, Skipped = 0;
    /// The number of functions whose final cost differs from the trial's cost.
    unsigned Differing = 0;
    bool OutOfTime = false;
    /// The number of trials of each policy that have reached their limit.
    llvm::SmallDenseMap<const FunctionPolicy *, unsigned, 4> Late;
    /// False if no model is compared in the trials of greedy.
    bool Compares = true;
    /// Sums over the searched functions.
    double GreedyCost = 0, BestCost = 0;
  };

  const llvm::TargetMachine &Target;
  std::unique_ptr<ModulePolicies> Policies;
  std::vector<TriedPolicy> Trials;
  /// True between begin() and finish().
  bool IsInFunction = false;
  /// In a trial's process: the pipe to the compiler. Otherwise -1.
  int Pipe = -1;
  /// In the trial of greedy, the model whose decisions are compared with LLVM's
  /// decisions.
  AdvisorModel *ToCompare = nullptr;
  /// The policy whose models are used for the current function.
  const FunctionPolicy *Deciding = nullptr;
  std::optional<AllocationCost> ChosenCost;
  ModuleResult Found;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONSEARCH_H
