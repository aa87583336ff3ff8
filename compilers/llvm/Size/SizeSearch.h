//===- SizeSearch.h - Searches inlining decisions for size ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Searches the inlining decisions, and the passes, with which a whole program
/// has the least linked code. A trial reverses many decisions of LLVM at once,
/// at call sites that have no function in common. The change of a function's
/// size then shows which reversals help. A second trial verifies these
/// reversals.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZESEARCH_H
#define MLBRIDGE_LLVM_SIZE_SIZESEARCH_H

#include "Size/DecisionTrial.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"

#include <functional>
#include <random>

namespace MLBridge {

struct NamedPipeline {
  std::string Name;
  /// The passes, as for `opt -passes=`. Empty for the pipeline of clang -Oz.
  std::string Passes;
};

struct SizeSearchOptions {
  /// The limit on CPU time, in seconds. The search also ends when it finds
  /// nothing more.
  double Seconds = 1800;
  /// The largest number of call sites that a trial reverses.
  unsigned Batch = 160;
  std::uint64_t Seed = 1;
  /// Pipelines to try in place of the pipeline of clang -Oz.
  std::vector<NamedPipeline> Pipelines;
};

/// The reversal of one or more decisions that belong together.
struct Flip {
  /// Indices of call sites in the previous trial.
  std::vector<std::size_t> Sites;
  /// The change in bytes of linked code that is attributed to the flip.
  double Change = 0;
};

/// Attributes each change of a function's size from \p Before to \p After to
/// some of \p Flips, which are flips of call sites of \p Before. These are the
/// flips at whose sites the function is the caller or the callee. If there are
/// none, these are the flips whose callers or callees are inlined into the
/// function. Several flips share a change equally.
void attributeChanges(const TrialResult &Before, const TrialResult &After,
                      std::vector<Flip> &Flips);

class SizeSearch {
public:
  struct Progress {
    unsigned Trials = 0;
    /// The CPU time of the search so far, in seconds.
    double Seconds = 0;
    /// The bytes of linked code: with LLVM's decisions, and in the best trial.
    std::uint64_t Stock = 0, Best = 0;
    std::size_t Sites = 0;
  };
  using Report = std::function<void(const Progress &)>;
  /// Receives the previous trial and the flips that were tried on it.
  using Log = std::function<Error(const TrialResult &, llvm::ArrayRef<Flip>)>;

  /// \p Program must outlive this object.
  SizeSearch(TrialProgram &Program, SizeSearchOptions Given, Report OnTrial,
             Log OnFlips)
      : Program(Program), Options(std::move(Given)),
        OnTrial(std::move(OnTrial)), OnFlips(std::move(OnFlips)),
        Random(Options.Seed) {}

  /// Searches, starting with the decisions in \p Start and the passes in \p
  /// With. Returns the error of a trial or of the log.
  Error run(const DecisionTable &Start, const NamedPipeline &With);

  /// The best trial so far.
  const TrialResult &best() const { return Best; }
  /// The decisions that the search gave to the best trial.
  const DecisionTable &decisions() const { return Table; }
  /// The pipeline of the best trial.
  const NamedPipeline &pipeline() const { return Pipeline; }

private:
  Expected<TrialResult> tryOut(const DecisionTable &Decisions,
                               llvm::StringRef Passes);
  Expected<TrialResult> tryOut(const DecisionTable &Decisions) {
    return tryOut(Decisions, Pipeline.Passes);
  }
  /// Tries each pipeline with the decisions of the best trial.
  Error tryPipelines();
  /// Tries flips until each has been tried or the time is over. Returns true if
  /// one helped.
  Expected<bool> pass(unsigned Batch);
  std::vector<Flip> candidates();
  /// Removes flips from the end of \p Candidates. They share no function.
  std::vector<Flip> takeBatch(std::vector<Flip> &Candidates, unsigned Batch);
  Expected<bool> tryBatch(std::vector<Flip> Flips);
  DecisionTable with(llvm::ArrayRef<Flip> Flips) const;
  bool keepIfSmaller(const DecisionTable &Decisions, const NamedPipeline &With,
                     TrialResult Result);
  bool keepIfSmaller(const DecisionTable &Decisions, TrialResult Result) {
    return keepIfSmaller(Decisions, NamedPipeline(Pipeline), std::move(Result));
  }
  bool isOver() const { return State.Seconds >= Options.Seconds; }

  TrialProgram &Program;
  const SizeSearchOptions Options;
  const Report OnTrial;
  const Log OnFlips;
  std::mt19937_64 Random;
  Progress State;
  DecisionTable Table;
  NamedPipeline Pipeline;
  TrialResult Best;
  /// The keys of the call sites that the current pass has tried.
  llvm::StringSet<> Tried;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZESEARCH_H
