//===- Program.h - A module, and what actions make of it --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Program: one module and the states that sequences of actions lead it to.
/// Making machine code dominates the time of a step, so a state that was
/// measured is not measured again: neither when the same sequence comes back,
/// nor when another one has led to the same IR.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H
#define MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H

#include "PhaseOrdering/ActionSpace.h"
#include "PhaseOrdering/Observation.h"
#include "PhaseOrdering/RegisterInside.h"
#include "PhaseOrdering/Reward.h"
#include "PhaseOrdering/StockPipeline.h"

#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>
#include <unordered_map>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace MLBridge {

/// What all programs have in common.
struct ProgramSettings {
  ActionSpace Actions;
  RewardFunction Reward;
  /// Of histograms; none where nobody looks at them.
  std::optional<EmbeddingKind> Histograms;
  /// Whether LLVM's verifier sees each state, and histograms are counted from
  /// nothing to compare.
  bool Verify = false;
  /// How many states a program remembers; 0: none.
  std::size_t CachedStates = 0;
  /// For mca-cycles; empty: what the functions were compiled for.
  std::string CPU;
  /// What LLVM would do instead.
  StockPipeline Stock = {};
  /// What takes part in pipelines.
  RegisterInside Register = nullptr;
};

/// Used by one thread at a time.
class Program {
public:
  struct State {
    ModuleView View;
    Measurements Sizes;
    /// Of the IR; where machine code was wanted.
    std::optional<std::uint64_t> Hash;
  };
  /// Milliseconds.
  struct Times {
    double Passes = 0;   ///< In the passes of actions.
    double Emission = 0; ///< In making machine code and measuring it.
  };

  /// Reads a module, as bitcode or text, into a context of its own, without its
  /// debug information, which is no part of what is decided. \p Settings
  /// outlive it. Errors: System where there is no such file; Malformed where it
  /// is no valid module; those of createTargetMachine().
  static Expected<std::unique_ptr<Program>>
  load(llvm::StringRef Path, const ProgramSettings &Settings);
  /// The same of a copy of \p M.
  static Expected<std::unique_ptr<Program>>
  create(const llvm::Module &M, const ProgramSettings &Settings);
  ~Program();

  /// The state that \p Sequence leads to. Errors: Malformed where the verifier
  /// refuses what a pass made; those of machine code.
  Expected<State> state(const ActionSequence &Sequence);
  /// The IR that \p Sequence leads to; nothing is measured.
  Expected<ModuleView> view(const ActionSequence &Sequence);
  /// What LLVM's own pipeline makes of the module; computed once.
  Expected<Measurements> stock();
  /// Writes what \p Sequence leads to: an object if the name ends in ".o", else
  /// bitcode.
  Error write(const ActionSequence &Sequence, llvm::StringRef Path);

  /// The time since it was taken the last time.
  Times takeTimes();

private:
  struct Work;

  Program(std::unique_ptr<llvm::MemoryBuffer> IR,
          const ProgramSettings &Settings);
  static Expected<std::unique_ptr<Program>>
  create(std::unique_ptr<llvm::MemoryBuffer> IR,
         const ProgramSettings &Settings);
  /// Reads the module, for passes to run on it.
  Expected<std::unique_ptr<Work>> start(EmbeddingKind Kind);
  /// The same, behind the prologue.
  Expected<std::unique_ptr<Work>> startEpisode();
  /// Of the IR where the work stands.
  ModuleView look();
  /// Makes the work stand where \p Sequence leads.
  Error advance(const ActionSequence &Sequence);
  Error check(Work &At, const llvm::Twine &Culprit) const;
  /// Of \p M, whose instructions were counted.
  Error measure(llvm::StringRef Bitcode, Measurements &Into);
  /// The object of a module that was written with the order of its uses.
  Expected<llvm::SmallVector<char, 0>> emit(llvm::StringRef Bitcode);

  const ProgramSettings &Settings;
  /// What was in the file. It is read anew for each episode, into a context of
  /// its own: a clone has its uses in another order, which passes go by, and in
  /// a context that is shared types get other names.
  const std::unique_ptr<llvm::MemoryBuffer> IR;
  std::string Name, CPU;
  /// What passes ask of the target. It makes no code.
  std::unique_ptr<llvm::TargetMachine> TM;
  std::unique_ptr<Work> Now;
  std::optional<Measurements> Stock;
  std::map<ActionSequence, State> States;
  std::unordered_map<std::uint64_t, Measurements> ByHash;
  Times Spent;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H
