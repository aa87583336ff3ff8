//===- ModelRunnerAdapter.h - Runners for LLVM's advisors -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelRunnerAdapter lets LLVM's own ML advisors (inliner, register allocator,
/// ...) use any runner of this library. LLVM fills the input tensors through
/// getTensor<T>() and then evaluates the model. The runner reads the tensors in
/// place, so the adapter copies and allocates nothing.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_MODELRUNNERADAPTER_H
#define MLBRIDGE_LLVM_SUPPORT_MODELRUNNERADAPTER_H

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Analysis/MLModelRunner.h"

#include <optional>
#include <string>
#include <vector>

namespace MLBridge {

/// An llvm::MLModelRunner that sends its requests to a runner of this library.
/// The adapter does not own that runner. Only one thread at a time may use the
/// adapter. Inside this class, the unqualified name MLModelRunner means LLVM's
/// base class.
class ModelRunnerAdapter final : public llvm::MLModelRunner {
public:
  /// \p Inputs are the tensors of a request. \p Advice is the advice's name and
  /// type. \p Subject names the subject of all requests, such as a pass and a
  /// module. switchContext() can append to the subject.
  ModelRunnerAdapter(llvm::LLVMContext &Ctx, MLBridge::MLModelRunner &Runner,
                     llvm::ArrayRef<llvm::TensorSpec> Inputs,
                     llvm::TensorSpec Advice, std::string Subject);

  /// Sends a request. If the model fails or defers, returns an error, whereas
  /// llvm::MLModelRunner::evaluate fails the compile.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<MLBridge::Advice> Reply =
        Runner.ask(Features, AdviceSpec::of<T>());
    if (!Reply)
      return Reply.takeError();
    return Reply->template get<T>();
  }

  /// Returns the features of the next request. They view the input tensors.
  const FeatureSet &features() const { return Features; }

  /// Passes the final decision to the runner, which may log it. The logged
  /// tensor has the advice's name and shape. T must be the advice's type.
  template <typename T>
  Error logOutcome(const T &Decision,
                   std::optional<double> Reward = std::nullopt) {
    TensorView View = viewOf(AdviceTensor, &Decision);
    return Runner.logOutcomeUntyped(&View, Reward);
  }

  /// Sets the subject of the next requests to the constructor's subject,
  /// followed by ":" and \p Name unless \p Name is empty.
  void switchContext(llvm::StringRef Name) override;

private:
  static TensorView viewOf(const llvm::TensorSpec &Spec, const void *Data);
  template <typename T> Error readAdvice();

  /// LLVM's evaluate<T>() calls this function. If the model fails or defers,
  /// this function reports an error, which fails the compile, and returns
  /// zeros.
  void *evaluateUntyped() override;

  MLBridge::MLModelRunner &Runner;
  const llvm::TensorSpec AdviceTensor;
  const std::string Subject;
  /// Views of the input buffers. The constructor creates them.
  FeatureSet Features;
  /// Holds the advice that evaluateUntyped() returns. The elements are doubles
  /// so that the buffer is aligned for every type.
  std::vector<double> AdviceBuffer;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_MODELRUNNERADAPTER_H
