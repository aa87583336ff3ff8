//===- ModelRunnerAdapter.h - A runner in LLVM's terms ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelRunnerAdapter: lets whatever LLVM wrote for its own ML advisors
/// (inliner, register allocator, ...) ask any runner of this library. LLVM
/// fills the tensors with getTensor<T>() and evaluates; each request lends
/// those same buffers to the runner, so nothing is copied or allocated here.
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

/// An llvm::MLModelRunner that asks a bridge runner, which it does not own.
/// (Inside, MLModelRunner by itself is the base class.) Used by one thread at a
/// time, as both of these are.
class ModelRunnerAdapter final : public llvm::MLModelRunner {
public:
  /// \p Inputs are the tensors of a request, \p Advice is the answer's name
  /// and type. \p Subject is what all requests are about, such as the pass
  /// and the module; switchContext() adds to it.
  ModelRunnerAdapter(llvm::LLVMContext &Ctx, MLBridge::MLModelRunner &Runner,
                     llvm::ArrayRef<llvm::TensorSpec> Inputs,
                     llvm::TensorSpec Advice, std::string Subject);

  /// What llvm::MLModelRunner::evaluate cannot do: returns a failure, or that
  /// the model defers, instead of making the compile fail.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<MLBridge::Advice> Reply =
        Runner.ask(Features, AdviceSpec::of<T>());
    if (!Reply)
      return Reply.takeError();
    return Reply->template get<T>();
  }

  /// Tells the runner what was decided in the end, under the advice's name and
  /// shape. T is the advice's type.
  template <typename T>
  Error logOutcome(const T &Decision,
                   std::optional<double> Reward = std::nullopt) {
    TensorView View = viewOf(AdviceTensor, &Decision);
    return Runner.logOutcomeUntyped(&View, Reward);
  }

  /// Names what the next requests are about: the subject, and \p Name where
  /// there is one.
  void switchContext(llvm::StringRef Name) override;

private:
  static TensorView viewOf(const llvm::TensorSpec &Spec, const void *Data);
  template <typename T> Error readAdvice();

  /// For LLVM's own callers of evaluate<T>(). A failure, Deferred included, is
  /// an error of the compile; the zero that is returned then ends up nowhere.
  void *evaluateUntyped() override;

  MLBridge::MLModelRunner &Runner;
  const llvm::TensorSpec AdviceTensor;
  const std::string Subject;
  /// Views of the input buffers, made once.
  FeatureSet Features;
  /// Where evaluateUntyped() leaves the advice; of doubles, for alignment.
  std::vector<double> AdviceBuffer;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_MODELRUNNERADAPTER_H
