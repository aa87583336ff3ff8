//===- AllocatorModel.h - A model that allocates registers ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocatorModel is a model that allocates the functions of a module. It
/// receives one request for each function, and replies with preferences for
/// each live range, from which makePreferences() makes all decisions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H

#include "ModelSession.h"
#include "RegAlloc/AllocationObservation.h"
#include "RegAlloc/AllocationPolicy.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace llvm {
class Function;
class MachineFunction;
} // namespace llvm

namespace MLBridge {

/// What a model prefers for each live range. A range that comes from another
/// one by a split has the preferences of the latter.
struct Preferences {
  /// The range with the highest priority is allocated first.
  std::vector<float> Priority;
  /// A range can take the registers of ranges with a lower value.
  std::vector<float> Value;
  /// What happens to a range that finds no register: it is split if Split is
  /// positive and a split is possible, else spilled if Spill is positive, else
  /// left to greedy.
  std::vector<float> Spill, Split;
};

/// Decides by \p Given, a value for each row of \p Observation. Both must
/// outlive the policy.
std::unique_ptr<AllocationPolicy>
makePreferences(const AllocationContext &Context,
                const AllocationObservation &Observation,
                const Preferences &Given);

class AllocatorModel {
public:
  /// Opens a session with the model at \p Spec. If this fails, reports the
  /// error and returns null.
  static std::unique_ptr<AllocatorModel> open(llvm::StringRef Spec,
                                              llvm::Module &M);
  /// Prints the statistics if -mlbridge-print-statistics was given.
  ~AllocatorModel();

  /// See AdvisorModel::load().
  void load() { static_cast<void>(Session->runner().loadBeforeFork()); }

  /// Sends a request about a function, unless the last request was about the
  /// same function, and returns the policy that decides as the model prefers.
  /// Returns null if the model defers or fails. The policy is valid until the
  /// next request. The function leaves \p Context as it was.
  std::unique_ptr<AllocationPolicy> policy(const AllocationContext &Context);

private:
  AllocatorModel(llvm::Module &M, std::unique_ptr<ModelSession> Session);
  void observe(const AllocationContext &Context);
  Expected<Preferences> request(const llvm::MachineFunction &MF);
  /// Sends a request. Returns false if there are no preferences.
  bool prepare(const AllocationContext &Context);

  const std::string ModuleName;
  const std::unique_ptr<ModelSession> Session;
  AllocationObservation Observation;
  Preferences Given;
  /// The function of the last request, and whether there are preferences.
  const llvm::Function *Last = nullptr;
  bool HasPreferences = false;
  std::uint64_t Requests = 0, Deferred = 0, Failed = 0, Ranges = 0;
  std::chrono::steady_clock::duration Observing{}, Replying{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H
