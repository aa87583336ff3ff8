//===- AllocatorModel.h - A model that allocates registers ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocatorModel is a model that allocates the functions of a module. In the
/// form Question, it receives one request for each function, and replies with
/// preferences for each live range. In the form Dialogue, it receives one
/// request for each decision.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H

#include "RegAlloc/AllocationObservation.h"
#include "RegAlloc/AllocationPolicy.h"
#include "RegAlloc/DialoguePolicy.h"
#include "RegAlloc/Preferences.h"
#include "RegAlloc/RegAllocOptions.h"
#include "Support/ModelSession.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace llvm {
class Function;
class MachineFunction;
} // namespace llvm

namespace MLBridge {

class AllocatorModel final : private DialoguePartner {
public:
  /// Opens a session with the model at \p Spec. If this fails, reports the
  /// error and returns null.
  static std::unique_ptr<AllocatorModel>
  open(llvm::StringRef Spec, AllocatorForm Form, llvm::Module &M);
  /// Prints the statistics if -mlbridge-print-statistics was given.
  ~AllocatorModel() override;

  /// See AdvisorModel::load().
  void load();
  ModelSession &session() { return *Session; }

  /// Returns a policy that makes the model's decisions for a function, or null
  /// if the model defers or has failed. The policy is valid until the next
  /// call. In the form Question, sends the request, unless the last request was
  /// for the same function. Does not change \p Context.
  std::unique_ptr<AllocationPolicy> policy(const AllocationContext &Context);

private:
  AllocatorModel(AllocatorForm Form, std::unique_ptr<ModelSession> Opened)
      : Form(Form), Session(std::move(Opened)) {}
  std::optional<std::int64_t>
  decide(std::string_view Agent,
         const DialogueObservation &Observation) override;
  void refuse(Error Why) override;
  Expected<Preferences> request();
  /// Computes the features of a function and, in the form Question, sends the
  /// request. Returns false if the model does not decide.
  bool prepare(const AllocationContext &Context);

  const AllocatorForm Form;
  const std::unique_ptr<ModelSession> Session;
  AllocationObservation Observation;
  FeatureSet Features;
  Preferences Given;
  /// The function of the last policy, and whether the model decides about it.
  const llvm::Function *Last = nullptr;
  bool IsReady = false;
  std::uint64_t Ranges = 0;
  std::chrono::steady_clock::duration Observing{}, Replying{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATORMODEL_H
