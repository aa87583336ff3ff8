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
StringRef allocationCostsFile() { return AllocationCostsOpt; }

} // namespace MLBridge
