//===- AllocationEnvironment.h - Trains register allocation -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationEnvironment lets a trainer allocate functions. Each episode
/// allocates one function. This command runs the environment:
/// \code
///   opt-22 -load-pass-plugin=MLBridgeLLVM.so -disable-output empty.ll
///     -passes=mlbridge-regalloc-environment -mlbridge-environment=shm:NAME
///     -mlbridge-regalloc-functions=FOLDER
/// \endcode
/// It generates code for all modules of the folder, again and again, until the
/// trainer leaves.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONENVIRONMENT_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONENVIRONMENT_H

#include "MachineCode/MachineCode.h"
#include "RegAlloc/AllocationDriver.h"
#include "RegAlloc/DialoguePolicy.h"
#include "RegAlloc/Preferences.h"
#include "RegAlloc/TrialProcess.h"

#include "MLCompilerBridge/Training/SteppedEnvironment.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the pass `mlbridge-regalloc-environment`.
void registerAllocationEnvironment(llvm::PassBuilder &PB);

/// Returns the driver with which this thread's environment generates code, or
/// null outside of an environment.
std::shared_ptr<AllocationDriver> trainingDriver();

/// Lets the trainer allocate each function in which some live ranges find no
/// free register (see costWithFreeColours()). allocationReward() defines the
/// reward. In the form Question, the last observation of an episode repeats the
/// first one. In the form Dialogue, the last observation is zero. The
/// observation's information is a JSON object. Its keys are `module`,
/// `function`, `greedy` (the measure of greedy's allocation) and `cost` (the
/// measure of the trainer's allocation).
class AllocationEnvironment final : public AllocationDriver,
                                    private DialoguePartner {
public:
  struct Settings {
    AllocatorForm Form = AllocatorForm::Question;
    /// The number of consecutive episodes for each function. In the form
    /// Dialogue, it is always 1.
    unsigned Repeats = 1;
    /// Functions with more live ranges are left to greedy. 0 means no limit.
    unsigned MaxRanges = 0;
    /// The vocabulary file of MIR2Vec, or empty.
    std::string Vocabulary;
    AllocationMeasure Measure = AllocationMeasure::Cost;
  };

  AllocationEnvironment(Settings Options, SteppedEnvironment &Trainer)
      : Options(std::move(Options)), Trainer(Trainer) {}

  bool hasTrainer() const { return !TrainerLeft; }

  // AllocationDriver
  void beginModule(llvm::Module &M) override;
  std::unique_ptr<AllocationPolicy>
  begin(const AllocationContext &Context) override;
  void finish(const llvm::MachineFunction &MF,
              const AllocationCost &Cost) override;
  bool needsAllocator() const override { return true; }

  /// True if finishModule() needs an object file with a map of the blocks.
  bool needsObject() const {
    return Options.Measure == AllocationMeasure::Cycles;
  }
  /// In a trial's process, measures the code and ends the process.
  void finishModule(const llvm::Module &M, const ObjectCode &Object);

private:
  /// Waits for the command reset, unless a reset has already arrived for the
  /// next episode.
  bool waitForReset();
  /// Runs an episode of the form Question. In the trial's process, returns the
  /// policy to try. In the compiler, returns null.
  std::unique_ptr<AllocationPolicy> question(const AllocationContext &Context);
  void endEpisode(const std::optional<TrialOutcome> &Found,
                  const SteppedEnvironment::Observer &Last);
  double measure(const TrialOutcome &Found) const {
    return needsObject() ? Found.Cycles : Found.Cost.total();
  }

  // DialoguePartner
  std::optional<std::int64_t> decide(std::string_view Agent,
                                     const DialogueObservation &Step) override;
  void refuse(Error Why) override;

  const Settings Options;
  SteppedEnvironment &Trainer;
  bool TrainerLeft = false;
  bool HasReset = false;
  /// True from the start of a dialogue until it fails or finish() is called.
  bool InDialogue = false;
  /// In a trial's process, the pipe to the compiler. Otherwise -1.
  int Pipe = -1;
  /// The trial's cost, in a trial's process that continues after finish().
  std::optional<AllocationCost> TrialCost;
  std::string ModuleName;
  /// The current episode's function, and the measure of greedy's allocation.
  std::string FunctionName;
  double Greedy = 0;
  AllocationObservation Observation;
  Preferences Given;
  std::string LastAgent;
  DialogueObservation Zeros{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONENVIRONMENT_H
