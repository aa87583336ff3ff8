//===- SizeSearch.cpp - Searches inlining decisions for size --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Chooses batches of flips, and finds the flips that changed a function's
/// size.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <ctime>

using namespace llvm;

namespace MLBridge {

/// Returns the CPU time of this process in seconds. Elapsed time would depend
/// on the machine's other load.
static double cpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Expected<TrialResult> SizeSearch::tryOut(const DecisionTable &Decisions,
                                         StringRef Passes) {
  const double Start = cpuSeconds();
  Expected<TrialResult> Result = Program.run(Decisions, Passes);
  if (!Result)
    return Result;
  ++State.Trials;
  State.Seconds += cpuSeconds() - Start;
  if (State.Trials == 1)
    State.Stock = Result->Text.Bytes;
  return Result;
}

bool SizeSearch::keepIfSmaller(const DecisionTable &Decisions,
                               const NamedPipeline &With, TrialResult Result) {
  const bool IsSmaller = Result.Text.Bytes < Best.Text.Bytes;
  if (IsSmaller) {
    Table = Decisions;
    Pipeline = With;
    Best = std::move(Result);
  }
  State.Best = Best.Text.Bytes;
  State.Sites = Best.Sites.size();
  OnTrial(State);
  return IsSmaller;
}

DecisionTable SizeSearch::with(ArrayRef<Flip> Flips) const {
  DecisionTable Result = Table;
  for (const Flip &One : Flips)
    for (const std::size_t Index : One.Sites)
      Result[Best.Sites[Index].key()] = !Best.Sites[Index].Decision;
  return Result;
}

/// The most call sites of a callee that are flipped together.
static constexpr std::size_t MaxTogether = 4;

std::vector<Flip> SizeSearch::candidates() {
  std::vector<Flip> Result;
  StringMap<std::vector<std::size_t>> NotInlined;
  StringSet<> Seen;
  for (std::size_t Index = 0; Index < Best.Sites.size(); ++Index) {
    const CallSite &Site = Best.Sites[Index];
    if (!Seen.insert(Site.key()).second)
      continue;
    if (!Tried.contains(Site.key()))
      Result.push_back({{Index}});
    if (!Site.Decision)
      NotInlined[Site.Callee].push_back(Index);
  }
  // Flip all calls of a function together, because LLVM deletes the function
  // only if all of them are inlined.
  for (auto &Callee : NotInlined)
    if (Callee.second.size() > 1 && Callee.second.size() <= MaxTogether &&
        !Tried.contains(Callee.first()))
      Result.push_back({std::move(Callee.second)});
  std::ranges::shuffle(Result, Random);
  // Put the most promising flips last, because batches begin at the end. These
  // flips inline a linkonce function with few uses.
  auto Promise = [&](const Flip &One) {
    const CallSite &Site = Best.Sites[One.Sites.front()];
    if (Site.Decision || Site.CalleeUses > MaxTogether)
      return 0;
    return Site.CalleeIsLinkOnce && Site.CalleeUses <= One.Sites.size() ? 2 : 1;
  };
  std::ranges::sort(Result, {}, Promise);
  return Result;
}

std::vector<Flip> SizeSearch::takeBatch(std::vector<Flip> &Candidates,
                                        unsigned Batch) {
  std::vector<Flip> Taken, Left;
  StringSet<> Functions;
  while (!Candidates.empty()) {
    Flip Next = std::move(Candidates.back());
    Candidates.pop_back();
    const bool IsFree =
        Taken.size() < Batch &&
        none_of(
            Next.Sites,
            [&](std::size_t Index) {
              return Functions.contains(Best.Sites[Index].Caller) ||
                     Functions.contains(Best.Sites[Index].Callee);
            });
    if (IsFree)
      for (const std::size_t Index : Next.Sites) {
        Functions.insert(Best.Sites[Index].Caller);
        Functions.insert(Best.Sites[Index].Callee);
      }
    (IsFree ? Taken : Left).push_back(std::move(Next));
  }
  Candidates.assign(std::make_move_iterator(Left.rbegin()),
                    std::make_move_iterator(Left.rend()));
  return Taken;
}

namespace {

/// Attributes the changes of functions' sizes to flips.
class Attribution {
public:
  Attribution(const TrialResult &Before, const TrialResult &After) {
    for (const TrialResult *Of : {&Before, &After})
      for (const CallSite &Site : Of->Sites)
        if (Site.Decision)
          InlinedInto[Site.Callee].push_back(Site.Caller);
    for (const auto &Function : After.Text.Functions)
      Changes[Function.first()] += static_cast<double>(Function.second);
    for (const auto &Function : Before.Text.Functions)
      Changes[Function.first()] -= static_cast<double>(Function.second);
  }

  void attribute(const TrialResult &Before, std::vector<Flip> &Flips) {
    StringMap<std::vector<Flip *>> Near, Above;
    for (Flip &One : Flips) {
      StringSet<> Direct;
      for (const std::size_t Index : One.Sites) {
        Direct.insert(Before.Sites[Index].Caller);
        Direct.insert(Before.Sites[Index].Callee);
      }
      for (const auto &Function : Direct)
        Near[Function.getKey()].push_back(&One);
      for (const auto &Function : affected(Direct))
        Above[Function.getKey()].push_back(&One);
    }
    for (const auto &Function : Changes) {
      std::vector<Flip *> By = Near.lookup(Function.first());
      if (By.empty())
        By = Above.lookup(Function.first());
      for (Flip *One : By)
        One->Change += Function.second / static_cast<double>(By.size());
    }
  }

private:
  /// Returns \p Changed and all functions into which they are inlined.
  StringSet<> affected(const StringSet<> &Changed) const {
    StringSet<> Result;
    std::vector<std::string> Work;
    for (const auto &Function : Changed)
      Work.push_back(Function.getKey().str());
    while (!Work.empty()) {
      const std::string Function = std::move(Work.back());
      Work.pop_back();
      if (!Result.insert(Function).second)
        continue;
      if (auto By = InlinedInto.find(Function); By != InlinedInto.end())
        Work.insert(Work.end(), By->second.begin(), By->second.end());
    }
    return Result;
  }

  StringMap<std::vector<std::string>> InlinedInto;
  StringMap<double> Changes;
};

} // namespace

void attributeChanges(const TrialResult &Before, const TrialResult &After,
                      std::vector<Flip> &Flips) {
  Attribution(Before, After).attribute(Before, Flips);
}

Expected<bool> SizeSearch::tryBatch(std::vector<Flip> Flips) {
  for (const Flip &One : Flips)
    Tried.insert(One.Sites.size() == 1 ? Best.Sites[One.Sites[0]].key()
                                       : Best.Sites[One.Sites[0]].Callee);
  const DecisionTable All = with(Flips);
  Expected<TrialResult> Result = tryOut(All);
  if (!Result)
    return Result.takeError();
  attributeChanges(Best, *Result, Flips);
  if (Error E = OnFlips(Best, Flips))
    return E;

  std::vector<Flip> Good = Flips;
  erase_if(Good, [](const Flip &One) { return One.Change >= 0; });
  if (Good.size() == Flips.size() || Good.empty())
    return keepIfSmaller(All, std::move(*Result));
  const DecisionTable Chosen = with(Good);
  Expected<TrialResult> Verified = tryOut(Chosen);
  if (!Verified)
    return Verified.takeError();
  if (Verified->Text.Bytes <= Result->Text.Bytes)
    return keepIfSmaller(Chosen, std::move(*Verified));
  return keepIfSmaller(All, std::move(*Result));
}

Expected<bool> SizeSearch::pass(unsigned Batch) {
  Tried.clear();
  bool HasHelped = false;
  while (!isOver()) {
    // Accepted flips change the call sites, so list them again.
    std::vector<Flip> Candidates = candidates();
    if (Candidates.empty())
      break;
    bool HasChanged = false;
    while (!Candidates.empty() && !HasChanged && !isOver()) {
      Expected<bool> Helped = tryBatch(takeBatch(Candidates, Batch));
      if (!Helped)
        return Helped.takeError();
      HasHelped |= HasChanged = *Helped;
    }
  }
  return HasHelped;
}

Error SizeSearch::tryPipelines() {
  for (const NamedPipeline &One : Options.Pipelines) {
    if (isOver())
      break;
    if (One.Passes == Pipeline.Passes)
      continue;
    Expected<TrialResult> Result = tryOut(Table, One.Passes);
    if (!Result)
      return Result.takeError();
    keepIfSmaller(DecisionTable(Table), One, std::move(*Result));
  }
  return Error::success();
}

Error SizeSearch::run(const DecisionTable &Start, const NamedPipeline &With) {
  Expected<TrialResult> First = tryOut({});
  if (!First)
    return First.takeError();
  Best = std::move(*First);
  if (!Start.empty() || !With.Passes.empty()) {
    Expected<TrialResult> Given = tryOut(Start, With.Passes);
    if (!Given)
      return Given.takeError();
    keepIfSmaller(Start, With, std::move(*Given));
  }
  constexpr unsigned LeastBatch = 8;
  for (unsigned Batch = Options.Batch; !isOver();
       Batch = std::max(Batch / 2, LeastBatch)) {
    if (Error E = tryPipelines())
      return E;
    Expected<bool> Helped = pass(Batch);
    if (!Helped)
      return Helped.takeError();
    if (!*Helped && Batch <= LeastBatch)
      break;
  }
  return Error::success();
}

} // namespace MLBridge
