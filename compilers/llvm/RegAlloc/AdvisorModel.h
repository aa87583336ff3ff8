//===- AdvisorModel.h - A model that advises greedy -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AdvisorModel is a model that replaces one of the two advisors of LLVM's
/// greedy register allocator in a module. Its features and its advice have the
/// names, types and shapes of LLVM's own ML advisors, so a model that was
/// trained through LLVM's interactive channels also runs here.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ADVISORMODEL_H
#define MLBRIDGE_LLVM_REGALLOC_ADVISORMODEL_H

#include "Support/ModelSession.h"

#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class LiveInterval;
class MachineBlockFrequencyInfo;
class MachineFunction;
class MachineLoopInfo;
class Module;
class RAGreedy;
class RegAllocEvictionAdvisor;
class RegAllocPriorityAdvisor;
class SlotIndexes;
} // namespace llvm

namespace MLBridge {

class ModelRunnerAdapter;

/// The advisors of LLVM's greedy allocator.
enum class AdvisorKind { Eviction, Priority };

class AdvisorModel {
public:
  /// Opens a session with the model at \p Spec. If this fails, reports the
  /// error and returns null.
  static std::unique_ptr<AdvisorModel>
  open(AdvisorKind Kind, llvm::StringRef Spec, llvm::Module &M);
  /// Prints the statistics if -mlbridge-print-statistics was given.
  ~AdvisorModel();

  /// Loads the model now, so that forked trials need not load it. Reports the
  /// error if this fails. The process must have only one thread.
  void load();

  /// Returns the model's decision for the features in adapter(), or
  /// std::nullopt if the model defers or fails.
  template <typename T> std::optional<T> request();
  /// Logs the decision. Compares it with LLVM's decision \p Default if known.
  template <typename T> void decided(T Decision, std::optional<T> Default);
  /// Reports that a reply is not valid. LLVM decides from now on.
  void refuse(const std::string &Why);

  bool hasFailed() const { return Session->hasFailed(); }
  ModelSession &session() { return *Session; }

  /// From now on, LLVM decides, and the model is only compared with LLVM.
  void onlyCompare() {
    OnlyCompares = true;
    Agrees = true;
  }
  bool onlyCompares() const { return OnlyCompares; }
  /// True if the model has agreed with LLVM in each decision since
  /// onlyCompare().
  bool agrees() const { return Agrees && !hasFailed(); }
  ModelRunnerAdapter &adapter() { return *Adapter; }
  /// True if LLVM's own decisions are needed for the statistics.
  bool comparesWithDefault() const;

private:
  AdvisorModel(AdvisorKind Kind, llvm::Module &M,
               std::unique_ptr<ModelSession> Session);

  const std::unique_ptr<ModelSession> Session;
  const std::unique_ptr<ModelRunnerAdapter> Adapter;
  std::uint64_t Compared = 0, Differing = 0;
  bool OnlyCompares = false, Agrees = false;
  /// The duration of the first request, which may load the model, and the total
  /// duration of all other requests.
  std::chrono::steady_clock::duration First{}, Others{};
};

/// Returns an advisor that lets \p Model decide which live ranges lose their
/// register. \p Stock is LLVM's own advisor, which decides in these cases:
///
/// - The range that needs a register cannot be spilled, or can use more than 32
///   registers.
/// - The model defers or has failed.
/// - Greedy checks whether the ranges in a hint register can be evicted.
///
/// A reply is refused if `mask` is 0 at its position, so no reply can break
/// greedy's rules.
std::unique_ptr<llvm::RegAllocEvictionAdvisor>
makeModelEviction(const llvm::MachineFunction &MF, const llvm::RAGreedy &Greedy,
                  llvm::MachineBlockFrequencyInfo &Frequencies,
                  llvm::MachineLoopInfo &Loops, AdvisorModel &Model,
                  std::unique_ptr<llvm::RegAllocEvictionAdvisor> Stock);

/// Returns an advisor that lets \p Model compute the priorities of live ranges.
/// Greedy handles the range with the highest priority first. If the model
/// defers or has failed, \p Stock, LLVM's own advisor, decides.
std::unique_ptr<llvm::RegAllocPriorityAdvisor>
makeModelPriority(const llvm::MachineFunction &MF, const llvm::RAGreedy &Greedy,
                  llvm::SlotIndexes &Indexes, AdvisorModel &Model,
                  std::unique_ptr<llvm::RegAllocPriorityAdvisor> Stock);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ADVISORMODEL_H
