//===- AllocationDriver.h - Chooses a policy per function -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An AllocationDriver chooses the policy for each function and receives the
/// cost of the result. GivenAllocation chooses the policy that the options
/// select, AllocationSearch searches for the best policy, and
/// AllocationEnvironment lets a trainer decide.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONDRIVER_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONDRIVER_H

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/AllocationCost.h"
#include "RegAlloc/FunctionPolicy.h"

#include "llvm/ADT/ArrayRef.h"

#include <memory>
#include <optional>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// The result of a policy on a function.
struct TriedPolicy {
  const FunctionPolicy *Policy;
  /// Empty if the trial failed.
  std::optional<AllocationCost> Cost;
};

class AllocationDriver {
public:
  virtual ~AllocationDriver() = default;

  virtual void beginModule(llvm::Module &M) = 0;
  /// Returns the policy that allocates a function before LLVM's greedy
  /// allocator, or null if greedy allocates it alone. Sets greedy's advisors.
  virtual std::unique_ptr<AllocationPolicy>
  begin(const AllocationContext &Context) = 0;
  /// Informs the driver that finish() will be called for each function.
  virtual void expectCosts() {}
  /// Receives the cost of the function. Can end the process of a trial.
  virtual void finish(const llvm::MachineFunction &, const AllocationCost &) {}
  /// Prints statistics and remarks.
  virtual void endModule(const llvm::Module &) {}

  /// True if begin() needs a function that RegisterAllocator can handle.
  virtual bool needsAllocator() const = 0;
  /// The trials of the function for which finish() was last called.
  virtual llvm::ArrayRef<TriedPolicy> trials() const { return {}; }
};

/// Uses the policy that the options select.
class GivenAllocation final : public AllocationDriver {
public:
  void beginModule(llvm::Module &M) override {
    Policies = std::make_unique<ModulePolicies>(M);
  }
  std::unique_ptr<AllocationPolicy>
  begin(const AllocationContext &Context) override {
    Policies->given().setAdvisors();
    return Policies->given().allocator(Context);
  }
  void endModule(const llvm::Module &) override { Policies.reset(); }
  bool needsAllocator() const override {
    return Policies->given().needsAllocator();
  }

private:
  std::unique_ptr<ModulePolicies> Policies;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONDRIVER_H
