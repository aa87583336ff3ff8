//===- Program.h - A module and the results of actions on it ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Program is a module together with the states that sequences of actions lead
/// to. Most of the time of a step is spent on generating machine code.
/// Therefore, measurements are cached by sequence, and also by IR, because
/// different sequences can lead to the same IR.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H
#define MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H

#include "PhaseOrdering/ActionSpace.h"
#include "PhaseOrdering/Observation.h"
#include "PhaseOrdering/Reward.h"
#include "Pipeline/RegisterInside.h"
#include "Pipeline/StockPipeline.h"

#include "llvm/ADT/StringMap.h"
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
  /// The kind of histograms, or empty if no histograms are needed.
  std::optional<EmbeddingKind> Histograms;
  /// If true, LLVM's verifier checks each state, and each histogram is compared
  /// with a count of the whole module.
  bool Verify = false;
  /// The number of states that a program caches. If 0, there is no cache.
  std::size_t CachedStates = 0;
  /// The CPU for the measures of cycles. If empty, the program's target CPU.
  std::string CPU;
  /// LLVM's own pipeline, with which sequences are compared.
  StockPipeline Stock = {};
  /// Adds other optimisations to pipelines.
  RegisterInside Register = nullptr;
};

/// Only one thread at a time may use an object.
class Program {
public:
  struct State {
    ModuleView View;
    Measurements Sizes;
    /// The hash of the IR, if the reward needs machine code.
    std::optional<std::uint64_t> Hash;
  };
  /// Durations in milliseconds.
  struct Times {
    double Passes = 0;   ///< Running the passes of actions.
    double Emission = 0; ///< Generating and measuring machine code.
  };

  /// Reads a module from a file of bitcode or textual IR. The module has its
  /// own context. Its debug information is dropped, because it does not
  /// influence decisions. \p Settings must outlive the program. Returns System
  /// if the file cannot be read, Malformed if it is not a valid module, or an
  /// error of createTargetMachine().
  static Expected<std::unique_ptr<Program>>
  load(llvm::StringRef Path, const ProgramSettings &Settings);
  /// Creates a program from a copy of \p M.
  static Expected<std::unique_ptr<Program>>
  create(const llvm::Module &M, const ProgramSettings &Settings);
  ~Program();

  /// Returns the state after \p Sequence. Returns Malformed if LLVM's verifier
  /// rejects the result of a pass, or an error of generating or measuring
  /// machine code.
  Expected<State> state(const ActionSequence &Sequence);
  /// Returns only the histogram and the counts of the state after \p Sequence.
  /// No machine code is generated.
  Expected<ModuleView> view(const ActionSequence &Sequence);
  /// Returns the measurements after LLVM's own pipeline. They are computed at
  /// the first call.
  Expected<Measurements> stock();
  /// Writes the module after \p Sequence to \p Path. If the path ends in ".o",
  /// the file is an object file. Otherwise, it is bitcode.
  Error write(const ActionSequence &Sequence, llvm::StringRef Path);

  /// Returns the time spent since the last call of takeTimes().
  Times takeTimes();

private:
  struct Work;

  Program(std::unique_ptr<llvm::MemoryBuffer> IR,
          const ProgramSettings &Settings);
  static Expected<std::unique_ptr<Program>>
  create(std::unique_ptr<llvm::MemoryBuffer> IR,
         const ProgramSettings &Settings);
  /// Reads the module and prepares it for passes.
  Expected<std::unique_ptr<Work>> start(EmbeddingKind Kind);
  /// Reads the module, prepares it for passes and runs the prologue.
  Expected<std::unique_ptr<Work>> startEpisode();
  /// Returns the histogram and the counts of the current IR.
  ModuleView currentView();
  /// Brings the current module to the state after \p Sequence.
  Error advance(const ActionSequence &Sequence);
  Error check(Work &At, const llvm::Twine &Culprit) const;
  /// Generates machine code from \p Bitcode, and takes the measurements that
  /// the reward needs. The caller has already counted the instructions.
  Error measure(llvm::StringRef Bitcode, Measurements &Into);
  /// Generates an object file from \p Bitcode, which must contain the use
  /// order. If \p Runs is not null, assigns functionRuns() to it, and the
  /// object file also contains the addresses and frequencies of basic blocks.
  Expected<llvm::SmallVector<char, 0>>
  emit(llvm::StringRef Bitcode, llvm::StringMap<double> *Runs = nullptr);

  const ProgramSettings &Settings;
  /// The contents of the file. Each episode parses them again into a new
  /// context, because a clone of the module would differ. A clone has another
  /// order of uses, on which passes depend, and types in a shared context get
  /// other names.
  const std::unique_ptr<llvm::MemoryBuffer> IR;
  std::string Name, CPU;
  /// Describes the target to the passes. It generates no code.
  std::unique_ptr<llvm::TargetMachine> TM;
  std::unique_ptr<Work> Current;
  std::optional<Measurements> Stock;
  std::map<ActionSequence, State> States;
  std::unordered_map<std::uint64_t, Measurements> ByHash;
  Times Spent;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PROGRAM_H
