//===- LoopOptions.cpp - The options of loop distribution -----------------===//
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

#include "LoopDistribution/LoopOptions.h"

#include "Support/ModelSpecParser.h"
#include "Support/Options.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace MLBridge {

namespace {

struct PartitionParser : cl::parser<std::string> {
  using cl::parser<std::string>::parser;
  bool parse(cl::Option &O, StringRef, StringRef Given, std::string &Value) {
    for (StringRef Number : split(Given, ','))
      if (std::int64_t N = 0; Number.getAsInteger(10, N))
        return O.error("expected numbers with commas, found '" + Given + "'");
    Value = Given.str();
    return false;
  }
};

cl::opt<std::string, false, ModelSpecParser> LoopDistributionOpt(
    LoopDistributionName, cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide into which loops an innermost "
             "loop is distributed"));

cl::opt<DistributionForm> DistributionFormOpt(
    "mlbridge-loop-distribution-form", cl::cat(optionCategory()),
    cl::init(DistributionForm::Question),
    cl::desc("What the model of -mlbridge-loop-distribution decides:"),
    cl::values(clEnumValN(DistributionForm::Question, "question",
                          "the whole distribution of a loop (default)"),
               clEnumValN(DistributionForm::Dialogue, "dialogue",
                          "each step, by the agents node and partition")));

cl::opt<std::string, false, ModelSpecParser> LoopFactorsOpt(
    LoopFactorsName, cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide how innermost loops are "
             "vectorized, interleaved and unrolled"));

// This is not a list, because lld parses options twice and would append the
// numbers again.
cl::opt<std::string, false, PartitionParser> PartitionOpt(
    "mlbridge-loop-partition", cl::cat(optionCategory()), cl::Hidden,
    cl::value_desc("n,n,..."),
    cl::desc("For each seed, the number of its new loop; loops with another "
             "number of seeds do not change"));
cl::opt<int> FactorChoiceOpt("mlbridge-loop-choice", cl::cat(optionCategory()),
                             cl::init(-1), cl::Hidden,
                             cl::desc("Index of the factors for all loops"));
cl::opt<int> OnlyLoopOpt(
    "mlbridge-loop-number", cl::cat(optionCategory()), cl::init(-1), cl::Hidden,
    cl::desc("Change only the loop with this number in the module"));
cl::opt<int> RandomSeedOpt("mlbridge-loop-seed", cl::cat(optionCategory()),
                           cl::init(-1), cl::Hidden,
                           cl::desc("Decide about loops at random, with this "
                                    "random seed"));
cl::opt<bool> PrintOpt(
    "mlbridge-print-loops", cl::cat(optionCategory()),
    cl::desc("Print a line of JSON to stderr for each innermost loop before "
             "vectorization: what a model sees, and what is legal"));

} // namespace

static std::optional<unsigned> given(int Value) {
  return Value < 0 ? std::nullopt : std::optional(unsigned(Value));
}

LoopOptions loopOptions() {
  LoopOptions Result;
  Result.DistributionSpec = LoopDistributionOpt;
  Result.FactorsSpec = LoopFactorsOpt;
  Result.Form = DistributionFormOpt;
  // The parser has checked the numbers.
  for (StringRef Number : split(PartitionOpt, ','))
    if (std::int64_t Value = 0; !Number.getAsInteger(10, Value))
      Result.Fixed.Partition.push_back(Value);
  Result.Fixed.Factors = given(FactorChoiceOpt);
  Result.Fixed.OnlyLoop = given(OnlyLoopOpt);
  Result.RandomSeed = given(RandomSeedOpt);
  Result.Print = PrintOpt;
  return Result;
}

} // namespace MLBridge
