//===- FunctionPolicy.h - How a function is allocated -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FunctionPolicy combines the models and policies that decide about the
/// registers of a function. ModulePolicies creates the policies that the
/// options name, and owns the models that they use.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_FUNCTIONPOLICY_H
#define MLBRIDGE_LLVM_REGALLOC_FUNCTIONPOLICY_H

#include "RegAlloc/AdvisorModel.h"
#include "RegAlloc/AllocationPolicy.h"
#include "RegAlloc/AllocatorModel.h"
#include "RegAlloc/RegAllocOptions.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace MLBridge {

struct FunctionPolicy {
  /// The name in messages and in files.
  std::string Name;
  FixedPolicy Fixed = FixedPolicy::None;
  /// The models that replace greedy's advisors, or null.
  AdvisorModel *Eviction = nullptr;
  AdvisorModel *Priority = nullptr;
  /// The model that allocates before greedy, or null.
  AllocatorModel *Allocator = nullptr;

  /// Returns the policy that allocates a function before greedy, or null if
  /// greedy allocates it alone. May send a request, as AllocatorModel::policy()
  /// does.
  std::unique_ptr<AllocationPolicy>
  allocator(const AllocationContext &Context) const;
  /// True if allocator() may return a policy.
  bool needsAllocator() const;
  /// Returns the eviction model if the policy differs from greedy only in this
  /// model. Otherwise returns null.
  AdvisorModel *onlyEviction() const;
  /// Returns the sessions of Eviction, Priority and Allocator. Each can be
  /// null.
  std::array<ModelSession *, 3> sessions() const;
  bool hasModels() const { return Eviction || Priority || Allocator; }
  /// True if a model has failed.
  bool hasFailed() const;
  /// Sets the advisors for the function that greedy allocates next. If
  /// \p ToCompare is not null, it becomes the eviction model, but its decisions
  /// are only compared with LLVM's decisions.
  void setAdvisors(AdvisorModel *ToCompare = nullptr) const;
};

/// The policies of a module.
class ModulePolicies {
public:
  /// Creates the policies for \p M. If a model cannot be opened, reports the
  /// error, and the policy works without this model.
  explicit ModulePolicies(llvm::Module &M);

  /// The policy of -mlbridge-regalloc, -mlbridge-regalloc-policy,
  /// -mlbridge-eviction and -mlbridge-priority.
  const FunctionPolicy &given() const { return Given; }
  /// The policies that a search tries, in this order: greedy, given() if it is
  /// another policy, the policies of -mlbridge-regalloc-try, and the fixed
  /// policies.
  llvm::ArrayRef<FunctionPolicy> tried() const { return Tried; }
  /// Loads the models of the first \p Count policies in tried().
  void load(std::size_t Count);

private:
  FunctionPolicy make(const PolicyDescription &Description, llvm::Module &M);
  AdvisorModel *open(AdvisorKind Kind, llvm::StringRef Spec, llvm::Module &M);

  std::vector<std::unique_ptr<AdvisorModel>> Advisors;
  std::vector<std::unique_ptr<AllocatorModel>> Allocators;
  FunctionPolicy Given;
  std::vector<FunctionPolicy> Tried;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_FUNCTIONPOLICY_H
