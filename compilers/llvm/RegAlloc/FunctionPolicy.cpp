//===- FunctionPolicy.cpp - How a function is allocated -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates policies from options.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/FunctionPolicy.h"

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/GreedyAdvisors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace MLBridge {

std::unique_ptr<AllocationPolicy>
FunctionPolicy::allocator(const AllocationContext &Context) const {
  if (Allocator)
    return Allocator->policy(Context);
  switch (Fixed) {
  case FixedPolicy::WeightOrder:
    return makeWeightOrder();
  case FixedPolicy::FreeColours:
    return makeFreeColours();
  case FixedPolicy::Random:
    return makeRandomPolicy(randomPolicyOptions(),
                            xxh3_64bits(Context.MF.getName()));
  case FixedPolicy::None:
  case FixedPolicy::EvictionByWeight:
  case FixedPolicy::PriorityBySize:
    return nullptr;
  }
  return nullptr;
}

bool FunctionPolicy::needsAllocator() const {
  return Allocator || Fixed == FixedPolicy::WeightOrder ||
         Fixed == FixedPolicy::FreeColours || Fixed == FixedPolicy::Random;
}

AdvisorModel *FunctionPolicy::onlyEviction() const {
  const bool IsOnly =
      Fixed == FixedPolicy::None && Eviction && !Priority && !Allocator;
  return IsOnly ? Eviction : nullptr;
}

std::array<ModelSession *, 3> FunctionPolicy::sessions() const {
  return {Eviction ? &Eviction->session() : nullptr,
          Priority ? &Priority->session() : nullptr,
          Allocator ? &Allocator->session() : nullptr};
}

bool FunctionPolicy::hasFailed() const {
  return any_of(sessions(), [](const ModelSession *Session) {
    return Session && Session->hasFailed();
  });
}

void FunctionPolicy::setAdvisors(AdvisorModel *ToCompare) const {
  GreedyAdvisors Advisors;
  if (Fixed == FixedPolicy::EvictionByWeight)
    Advisors.Eviction = EvictionBy::Weight;
  if (Fixed == FixedPolicy::PriorityBySize)
    Advisors.Priority = PriorityBy::Size;
  Advisors.EvictionModel = ToCompare ? ToCompare : Eviction;
  if (ToCompare)
    ToCompare->onlyCompare();
  Advisors.PriorityModel = Priority;
  setGreedyAdvisors(Advisors);
}

/// Returns the option whose model would decide in place of the fixed policy of
/// \p Given. Empty if \p Given sets no such option.
static StringRef optionBesidePolicy(const PolicyDescription &Given) {
  switch (Given.Fixed) {
  case FixedPolicy::WeightOrder:
  case FixedPolicy::FreeColours:
  case FixedPolicy::Random:
    return Given.Allocator.empty() ? "" : "-mlbridge-regalloc";
  case FixedPolicy::EvictionByWeight:
    return Given.Eviction.empty() ? "" : "-mlbridge-eviction";
  case FixedPolicy::PriorityBySize:
    return Given.Priority.empty() ? "" : "-mlbridge-priority";
  case FixedPolicy::None:
    return "";
  }
  return "";
}

ModulePolicies::ModulePolicies(Module &M) : Given(make(givenPolicy(), M)) {
  if (const StringRef Option = optionBesidePolicy(givenPolicy());
      !Option.empty())
    M.getContext().emitError("-mlbridge-regalloc-policy: expected no " +
                             Option + ", which decides the same; omit one");
  const std::vector<PolicyDescription> Further = triedPolicies();
  const std::size_t Needed =
      (givenPolicy().isGreedy() ? 1 : 2) + Further.size();
  if (!Further.empty() && allocationSearch() < Needed)
    M.getContext().emitError(
        "-mlbridge-regalloc-try: expected -mlbridge-regalloc-search=" +
        Twine(Needed) + " or more, which tries all given policies, found " +
        Twine(allocationSearch()));
  if (allocationSearch() == 0)
    return;
  Tried.push_back(make(fixedPolicies().front(), M));
  if (!givenPolicy().isGreedy())
    Tried.push_back(Given);
  for (const PolicyDescription &Description : Further)
    Tried.push_back(make(Description, M));
  for (const PolicyDescription &Description : fixedPolicies().drop_front())
    Tried.push_back(make(Description, M));
}

void ModulePolicies::load(std::size_t Count) {
  for (const FunctionPolicy &Policy : tried().take_front(Count))
    for (AdvisorModel *Model : {Policy.Eviction, Policy.Priority})
      if (Model)
        Model->load();
  for (const FunctionPolicy &Policy : tried().take_front(Count))
    if (Policy.Allocator)
      Policy.Allocator->load();
}

FunctionPolicy ModulePolicies::make(const PolicyDescription &Description,
                                    Module &M) {
  FunctionPolicy Policy;
  Policy.Name = Description.Name;
  Policy.Fixed = Description.Fixed;
  Policy.Eviction = open(AdvisorKind::Eviction, Description.Eviction, M);
  Policy.Priority = open(AdvisorKind::Priority, Description.Priority, M);
  if (!Description.Allocator.empty())
    if (auto Model =
            AllocatorModel::open(Description.Allocator, Description.Form, M)) {
      Allocators.push_back(std::move(Model));
      Policy.Allocator = Allocators.back().get();
    }
  return Policy;
}

AdvisorModel *ModulePolicies::open(AdvisorKind Kind, StringRef Spec,
                                   Module &M) {
  if (Spec.empty())
    return nullptr;
  std::unique_ptr<AdvisorModel> Model = AdvisorModel::open(Kind, Spec, M);
  if (!Model)
    return nullptr;
  Advisors.push_back(std::move(Model));
  return Advisors.back().get();
}

} // namespace MLBridge
