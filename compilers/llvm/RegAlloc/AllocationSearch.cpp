//===- AllocationSearch.cpp - The best allocation of each function --------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares policies by the cost that AllocationCost measures.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationSearch.h"

#include "RegAlloc/RegisterAllocator.h"
#include "RegAlloc/TrialProcess.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LLVMRemarkStreamer.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Target/TargetMachine.h"

#include <algorithm>
#include <utility>

using namespace llvm;

namespace MLBridge {

/// The number of trials that can reach their limit before a policy is no longer
/// tried.
static constexpr unsigned MaxLateTrials = 3;

void AllocationSearch::beginModule(Module &M) {
  Found = ModuleResult();
  Policies = std::make_unique<ModulePolicies>(M);
}

/// True if LLVM's option -enable-machine-outliner was given.
static bool isOutlinerForced() {
  const cl::Option *Outliner =
      cl::getRegisteredOptions().lookup("enable-machine-outliner");
  return Outliner && Outliner->getNumOccurrences() != 0;
}

std::string AllocationSearch::whyNot() const {
  if (!Found.IsMeasured)
    return "code generation stops before the result can be measured";
  // In these cases, a function's code depends on other functions.
  if (Target.Options.EnableIPRA)
    return "registers are allocated across functions (-enable-ipra)";
  if (isOutlinerForced())
    return "the machine outliner is enabled";
  const unsigned Threads = countThreads();
  if (Threads != 1)
    return Threads == 0
               ? "the number of threads is unknown"
               : formatv("the process has {0} threads, and a search needs one "
                         "(in lld, use full LTO and --threads=1)",
                         Threads)
                     .str();
  return "";
}

std::chrono::milliseconds AllocationSearch::timeForTrial() const {
  const std::chrono::milliseconds Limit = allocationTrialLimit();
  const std::chrono::milliseconds Budget = allocationSearchBudget();
  if (Budget == Budget.zero())
    return Limit;
  const auto Used = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - Found.Begin);
  return std::clamp(Budget - Used, Budget.zero(), Limit);
}

/// Returns true if \p Policy will probably not improve on greedy. \p Agreeing
/// is the eviction model if it made the same decisions as greedy, or null.
/// \p FreeColours is the cost of spilling all ranges without a free colour,
/// relative to greedy's cost.
static bool cannotGain(const FunctionPolicy &Policy,
                       const AdvisorModel *Agreeing, double FreeColours) {
  // In the 2,565 training functions, this limit saves 42 percent of the
  // policy's trials. Compared with -mlbridge-regalloc-search-all, the costs of
  // a search with 4 policies are 0.3 percent higher in sum, and 0.9 percent
  // higher as a geometric mean.
  if (Policy.Fixed == FixedPolicy::WeightOrder)
    return FreeColours > 1;
  // A model that agreed would make the same code as greedy. Agreement usually
  // means that there are few evictions, so the order of the ranges, which
  // PriorityBySize changes, hardly matters.
  return Agreeing && (Policy.onlyEviction() == Agreeing ||
                      Policy.Fixed == FixedPolicy::PriorityBySize);
}

std::optional<double>
AllocationSearch::prepare(const AllocationContext &Context,
                          ArrayRef<FunctionPolicy> Tried) {
  if (Found.Refused.empty())
    Found.Refused = whyNot();
  if (!Found.Refused.empty() || Found.OutOfTime)
    return std::nullopt;
  const double FreeColours = costWithFreeColours(Context);
  if (FreeColours == 0) {
    ++Found.Easy;
    return std::nullopt;
  }
  if (++Found.Searched == 1) {
    Policies->load(Tried.size());
    // Check again, because a model may have started threads.
    Found.Refused = whyNot();
    if (!Found.Refused.empty())
      return std::nullopt;
  }
  return FreeColours;
}

TrialOutcome AllocationSearch::outcome(const AllocationCost &Cost) const {
  TrialOutcome Result;
  Result.Cost = Cost;
  Result.ModelAgrees = ToCompare && ToCompare->agrees();
  const auto Sessions = Deciding->sessions();
  for (const auto &[I, Session] : enumerate(Sessions)) {
    if (!Session)
      continue;
    Result.Requests[I] = Session->requests();
    if (Session->hasFailed()) {
      Result.FailedModel = int(I);
      // Leave the last byte 0, which ends the text.
      const StringRef Text = Session->reported();
      copy(Text.take_front(Result.Failure.size() - 1), Result.Failure.begin());
    }
  }
  return Result;
}

bool AllocationSearch::accept(const Trial &Result,
                              const FunctionPolicy &Deciding, bool ByGreedy,
                              std::chrono::milliseconds Limit,
                              StringRef Function) {
  if (Result.Outcome)
    for (const auto &[Session, Requests] :
         zip_equal(Deciding.sessions(), Result.Outcome->Requests))
      if (Session)
        Session->countInCopy(Requests - Session->requests());
  if (Result.Outcome && Result.Outcome->FailedModel < 0)
    return true;
  if (Result.Outcome) {
    const auto Model = std::size_t(Result.Outcome->FailedModel);
    Deciding.sessions()[Model]->failAsInCopy(Result.Outcome->Failure.data());
  } else if (Result.NotStarted) {
    Found.Refused =
        "no process could be started: " + Result.NotStarted.message();
  } else if (!Result.IsLate || Limit != allocationTrialLimit()) {
    return false;
  } else if (ByGreedy) {
    // The compared model may be the cause.
    Found.Compares = false;
    printLine("remark: mlbridge-regalloc-search: " + withoutControls(Function) +
              ": not searched, because greedy's trial took longer than " +
              Twine(Limit.count()) + " ms");
  } else if (++Found.Late[&Deciding] == MaxLateTrials) {
    printLine("remark: mlbridge-regalloc-search: " + withoutControls(Function) +
              ": policy '" + Deciding.Name + "' took longer than " +
              Twine(Limit.count()) + " ms for " + Twine(MaxLateTrials) +
              " functions; it is not tried on further functions");
  }
  return false;
}

const FunctionPolicy &
AllocationSearch::choose(const AllocationContext &Context) {
  ChosenCost.reset();
  Trials.clear();
  const ArrayRef<FunctionPolicy> Tried =
      Policies->tried().take_front(allocationSearch());
  const FunctionPolicy &Greedy = Tried.front();
  const std::optional<double> FreeColours = prepare(Context, Tried);
  if (!FreeColours)
    return Greedy;
  const bool Predicts = !triesAllPolicies();
  const auto IsExcluded = [&](const FunctionPolicy &Policy) {
    return Policy.hasFailed() || Found.Late.lookup(&Policy) >= MaxLateTrials;
  };
  AdvisorModel *const Compared =
      Predicts && Found.Compares && Tried.size() > 1 && !IsExcluded(Tried[1])
          ? Tried[1].onlyEviction()
          : nullptr;
  const FunctionPolicy *Best = &Greedy;
  std::optional<AllocationCost> GreedyCost;
  const AdvisorModel *Agreeing = nullptr;
  for (const FunctionPolicy &Policy : Tried) {
    if (IsExcluded(Policy))
      continue;
    if (Predicts && GreedyCost &&
        cannotGain(Policy, Agreeing, *FreeColours / GreedyCost->total())) {
      ++Found.Skipped;
      continue;
    }
    const std::chrono::milliseconds Limit = timeForTrial();
    Found.OutOfTime = Limit == Limit.zero();
    if (Found.OutOfTime)
      break;
    // Send the request before the fork, so that the model can be in another
    // process.
    if (Policy.Allocator)
      Policy.Allocator->policy(Context);
    // If the request has failed, the trial would repeat greedy's trial.
    if (IsExcluded(Policy))
      continue;
    const bool IsGreedy = &Policy == &Greedy;
    const FunctionPolicy &Used = IsGreedy && Compared ? Tried[1] : Policy;
    const Trial Result = forkTrial(Limit);
    if (Result.IsCopy) {
      Pipe = Result.Pipe;
      ToCompare = IsGreedy ? Compared : nullptr;
      Deciding = &Used;
      // The copy must not write remarks to the compiler's remark file.
      Context.MF.getFunction().getContext().setLLVMRemarkStreamer(nullptr);
      return Policy;
    }
    // Greedy's cost is right even if the compared model has failed.
    const bool IsValid =
        accept(Result, Used, IsGreedy, Limit, Context.MF.getName()) ||
        (IsGreedy && Result.Outcome);
    Trials.push_back({&Policy, IsValid ? std::optional(Result.Outcome->Cost)
                                       : std::nullopt});
    const std::optional<AllocationCost> &Cost = Trials.back().Cost;
    if (!Cost) {
      ++Found.FailedTrials;
      // Stop if greedy's trial failed, because other costs are compared with
      // greedy's.
      if (IsGreedy || !Found.Refused.empty())
        break;
      continue;
    }
    if (IsGreedy) {
      GreedyCost = Cost;
      Agreeing = Result.Outcome->ModelAgrees ? Compared : nullptr;
    }
    if (!ChosenCost || Cost->isBetterThan(*ChosenCost)) {
      ChosenCost = Cost;
      Best = &Policy;
    }
    if (GreedyCost->total() == 0)
      break;
  }
  if (GreedyCost) {
    Found.GreedyCost += GreedyCost->total();
    Found.BestCost += ChosenCost->total();
    Found.Improved += Best != &Greedy;
  }
  return *Best;
}

std::unique_ptr<AllocationPolicy>
AllocationSearch::begin(const AllocationContext &Context) {
  IsInFunction = true;
  const FunctionPolicy &Chosen = choose(Context);
  if (Pipe < 0)
    Deciding = &Chosen;
  Chosen.setAdvisors(ToCompare);
  return Chosen.allocator(Context);
}

void AllocationSearch::finish(const MachineFunction &MF,
                              const AllocationCost &Cost) {
  if (Pipe >= 0)
    endTrial(Pipe, outcome(Cost));
  // Without begin(), the trials still belong to an earlier function.
  if (!std::exchange(IsInFunction, false))
    Trials.clear();
  const std::optional<AllocationCost> Trial = std::exchange(ChosenCost, {});
  if (Trial && Cost != *Trial) {
    ++Found.Differing;
    printLine(
        "remark: mlbridge-regalloc-search: " + withoutControls(MF.getName()) +
        ": the final code and its trial have different costs; " +
        (Deciding->hasModels() ? "the models of policy '" + Deciding->Name +
                                     "' may have replied differently"
                               : "please report this"));
  }
}

void AllocationSearch::endModule(const Module &M) {
  const std::string Prefix =
      ModelSession::prefix("mlbridge-regalloc-search", M);
  if (!Found.Refused.empty())
    printLine("remark: " + Prefix + "not searched, because " + Found.Refused);
  if (Found.OutOfTime)
    printLine("remark: " + Prefix +
              "the time budget was used up; greedy allocated the rest");
  if (printStatistics())
    printLine(formatv("{0}{1} functions searched, "
                      "{2} need no search; {3} improved, {4} trials failed, "
                      "{5} skipped, {6} differ; cost {7:F1}, by greedy {8:F1}",
                      Prefix, Found.Searched, Found.Easy, Found.Improved,
                      Found.FailedTrials, Found.Skipped, Found.Differing,
                      Found.BestCost, Found.GreedyCost)
                  .str());
  Policies.reset();
}

} // namespace MLBridge
