//===- RegAllocOptions.cpp - Options of register allocation ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/RegAllocOptions.h"

#include "Options.h"

#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<FixedPolicy> FixedPolicyOpt(
    "mlbridge-regalloc-policy", cl::cat(optionCategory()),
    cl::init(FixedPolicy::None), cl::Hidden,
    cl::desc("Allocate registers by a policy that is not learned:"),
    cl::values(clEnumValN(FixedPolicy::None, "none",
                          "LLVM's greedy allocator (default)"),
               clEnumValN(FixedPolicy::WeightOrder, "weight",
                          "the heaviest live range first, as -regalloc=basic"),
               clEnumValN(FixedPolicy::FreeColours, "free",
                          "greedy, but first all free registers by weight"),
               clEnumValN(FixedPolicy::EvictionByWeight, "eviction",
                          "greedy, but the lightest live ranges are evicted"),
               clEnumValN(FixedPolicy::PriorityBySize, "size",
                          "greedy, but the longest live range first"),
               clEnumValN(FixedPolicy::Random, "random",
                          "at random, for tests")));

cl::opt<unsigned> RandomSeedOpt("mlbridge-regalloc-seed",
                                cl::cat(optionCategory()), cl::init(1),
                                cl::Hidden,
                                cl::desc("Seed of the random policy"));
cl::opt<unsigned> RandomSplitOpt(
    "mlbridge-regalloc-random-split", cl::cat(optionCategory()), cl::init(20),
    cl::Hidden, cl::desc("Chance that the random policy splits, in percent"));
cl::opt<unsigned> RandomSpillOpt(
    "mlbridge-regalloc-random-spill", cl::cat(optionCategory()), cl::init(5),
    cl::Hidden, cl::desc("Chance that the random policy spills, in percent"));
cl::opt<unsigned>
    RandomEvictOpt("mlbridge-regalloc-random-evict", cl::cat(optionCategory()),
                   cl::init(10), cl::Hidden,
                   cl::desc("Chance that the random policy evicts although a "
                            "register is free, in percent"));
cl::opt<unsigned> RandomStopOpt(
    "mlbridge-regalloc-random-stop", cl::cat(optionCategory()), cl::init(0),
    cl::Hidden,
    cl::desc("Chance that the random policy leaves the rest of the function to "
             "greedy, per 1000 decisions"));

cl::opt<unsigned> AllocationSearchOpt(
    "mlbridge-regalloc-search", cl::cat(optionCategory()), cl::value_desc("k"),
    cl::init(0),
    cl::desc("Allocate each function by the best of <k> policies, of which "
             "LLVM's greedy allocator is the first"));
cl::opt<unsigned> AllocationSearchBudgetOpt(
    "mlbridge-regalloc-search-budget", cl::cat(optionCategory()),
    cl::value_desc("ms"), cl::init(0),
    cl::desc("Start no further trial of -mlbridge-regalloc-search after <ms> "
             "milliseconds in a module (default: 0, no limit)"));

cl::opt<std::string> AllocationCostsOpt(
    "mlbridge-regalloc-costs", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("Append a line of JSON to <file> for each function: the spills, "
             "reloads and copies after register allocation, weighted by the "
             "frequencies of their blocks"));

} // namespace

FixedPolicy fixedPolicy() { return FixedPolicyOpt; }
RandomPolicyOptions randomPolicyOptions() {
  return {RandomSeedOpt, RandomSplitOpt, RandomSpillOpt, RandomEvictOpt,
          RandomStopOpt};
}
unsigned allocationSearch() { return AllocationSearchOpt; }
std::chrono::milliseconds allocationSearchBudget() {
  return std::chrono::milliseconds(AllocationSearchBudgetOpt);
}
bool replacesAdvisors() {
  return allocationSearch() != 0 ||
         fixedPolicy() == FixedPolicy::EvictionByWeight ||
         fixedPolicy() == FixedPolicy::PriorityBySize;
}
StringRef allocationCostsFile() { return AllocationCostsOpt; }

} // namespace MLBridge
