//===- ModelRunnerAdapter.h - Any runner as an llvm::MLModelRunner -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelRunnerAdapter: lets LLVM's own ML advisors (inliner, register
/// allocator, ...) use any runner of this library. LLVM fills the tensors
/// through getTensor<T>() and evaluates. Each request lends the same buffers to
/// the runner, so nothing is copied or allocated here.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_MODELRUNNERADAPTER_H
#define MLBRIDGE_LLVM_MODELRUNNERADAPTER_H

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Analysis/MLModelRunner.h"

#include <optional>
#include <string>
#include <vector>

namespace MLBridge {

/// An llvm::MLModelRunner that sends requests to a bridge runner, which it does
/// not own. (Inside this class, MLModelRunner means the base class.) Used by
/// one thread at a time, like both runners.
class ModelRunnerAdapter final : public llvm::MLModelRunner {
public:
  /// \p Inputs are the tensors of a request; \p Advice is the advice's name and
  /// type. \p Subject names the subject of all requests, such as the pass and
  /// the module; switchContext() extends it.
  ModelRunnerAdapter(llvm::LLVMContext &Ctx, MLBridge::MLModelRunner &Runner,
                     llvm::ArrayRef<llvm::TensorSpec> Inputs,
                     llvm::TensorSpec Advice, std::string Subject);

  /// Unlike llvm::MLModelRunner::evaluate, returns a failure or Deferred
  /// instead of failing the compile.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<MLBridge::Advice> Reply =
        Runner.ask(Features, AdviceSpec::of<T>());
    if (!Reply)
      return Reply.takeError();
    return Reply->template get<T>();
  }

  /// Tells the runner the final decision, under the advice's name and shape. T
  /// is the advice's type.
  template <typename T>
  Error logOutcome(const T &Decision,
                   std::optional<double> Reward = std::nullopt) {
    TensorView View = viewOf(AdviceTensor, &Decision);
    return Runner.logOutcomeUntyped(&View, Reward);
  }

  /// Names the subject of the next requests: the subject, followed by \p Name
  /// if given.
  void switchContext(llvm::StringRef Name) override;

private:
  static TensorView viewOf(const llvm::TensorSpec &Spec, const void *Data);
  template <typename T> Error readAdvice();

  /// For LLVM's own callers of evaluate<T>(). A failure, including Deferred,
  /// fails the compile; the returned zero is then irrelevant.
  void *evaluateUntyped() override;

  MLBridge::MLModelRunner &Runner;
  const llvm::TensorSpec AdviceTensor;
  const std::string Subject;
  /// Views of the input buffers, made once.
  FeatureSet Features;
  /// The advice of evaluateUntyped(). Doubles, for alignment.
  std::vector<double> AdviceBuffer;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_MODELRUNNERADAPTER_H
