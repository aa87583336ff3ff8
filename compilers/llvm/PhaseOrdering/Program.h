//===- Program.h - A module and the results of actions on it ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Program: one module, and the states that sequences of actions lead to.
/// Generating machine code dominates the time of a step, so a measured state is
/// not measured again, neither for the same sequence nor for another one that
/// leads to the same IR.
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

/// Settings shared by all programs.
struct ProgramSettings {
  ActionSpace Actions;
  RewardFunction Reward;
  /// The kind of histograms; empty if they are not needed.
  std::optional<EmbeddingKind> Histograms;
  /// True to run LLVM's verifier on each state, and to compare histograms with
  /// complete counts.
  bool Verify = false;
  /// The number of states that a program caches; 0: no cache.
  std::size_t CachedStates = 0;
  /// For mca-cycles; empty: the target CPU of the functions.
  std::string CPU;
  /// The pipeline of LLVM that is replaced.
  StockPipeline Stock = {};
  /// Adds other optimisations to pipelines.
  RegisterInside Register = nullptr;
};

/// Used by one thread at a time.
class Program {
public:
  struct State {
    ModuleView View;
    Measurements Sizes;
    /// The hash of the IR, if machine code was needed.
    std::optional<std::uint64_t> Hash;
  };
  /// Milliseconds.
  struct Times {
    double Passes = 0;   ///< For the passes of actions.
    double Emission = 0; ///< For generating and measuring machine code.
  };

  /// Reads a module, as bitcode or text, into its own context, and drops its
  /// debug information, which does not influence decisions. \p Settings must
  /// outlive the program. Errors: System if the file does not exist; Malformed
  /// if it is not a valid module; those of createTargetMachine().
  static Expected<std::unique_ptr<Program>>
  load(llvm::StringRef Path, const ProgramSettings &Settings);
  /// The same for a copy of \p M.
  static Expected<std::unique_ptr<Program>>
  create(const llvm::Module &M, const ProgramSettings &Settings);
  ~Program();

  /// The state after \p Sequence. Errors: Malformed if the verifier rejects the
  /// result of a pass; those of machine code.
  Expected<State> state(const ActionSequence &Sequence);
  /// The observable facts after \p Sequence; measures nothing.
  Expected<ModuleView> view(const ActionSequence &Sequence);
  /// The measurements after LLVM's own pipeline; computed once.
  Expected<Measurements> stock();
  /// Writes the result of \p Sequence: an object file if the name ends in ".o",
  /// or else bitcode.
  Error write(const ActionSequence &Sequence, llvm::StringRef Path);

  /// The time since the last call of takeTimes().
  Times takeTimes();

private:
  struct Work;

  Program(std::unique_ptr<llvm::MemoryBuffer> IR,
          const ProgramSettings &Settings);
  static Expected<std::unique_ptr<Program>>
  create(std::unique_ptr<llvm::MemoryBuffer> IR,
         const ProgramSettings &Settings);
  /// Reads the module, ready to run passes.
  Expected<std::unique_ptr<Work>> start(EmbeddingKind Kind);
  /// The same, and runs the prologue.
  Expected<std::unique_ptr<Work>> startEpisode();
  /// Observes the current IR.
  ModuleView look();
  /// Brings the current module to the state after \p Sequence.
  Error advance(const ActionSequence &Sequence);
  Error check(Work &At, const llvm::Twine &Culprit) const;
  /// Measures a module whose instructions have been counted.
  Error measure(llvm::StringRef Bitcode, Measurements &Into);
  /// Generates the object file of a module that was written with its use order.
  Expected<llvm::SmallVector<char, 0>> emit(llvm::StringRef Bitcode);

  const ProgramSettings &Settings;
  /// The contents of the file. Read again for each episode, into a new context:
  /// a clone has another order of uses, on which passes depend, and in a shared
  /// context types get other names.
  const std::unique_ptr<llvm::MemoryBuffer> IR;
  std::string Name, CPU;
  /// Answers the passes' queries about the target; generates no code.
  std::unique_ptr<llvm::TargetMachine> TM;
  std::unique_ptr<Work> Now;
  std::optional<Measurements> Stock;
  std::map<ActionSequence, State> States;
  std::unordered_map<std::uint64_t, Measurements> ByHash;
  Times Spent;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H
