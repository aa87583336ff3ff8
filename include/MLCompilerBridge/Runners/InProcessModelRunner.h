//===- InProcessModelRunner.h - Models in this process ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines InProcessModelRunner, which evaluates models of any runtime in this
/// process. A runner has one model (`onnx:policy.onnx`) or several models with
/// labels (`aot:node=libnode.so,colour=libcolour.so`). A new runtime needs no
/// new runner class. Instead, pass a function that loads a file to
/// addModelFormat() (ModelFormat.h).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_INPROCESSMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_INPROCESSMODELRUNNER_H

#include "MLCompilerBridge/Extend/Model.h"
#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "MLCompilerBridge/MLModelRunner.h"

#include <cstdint>
#include <functional>
#include <map>

namespace MLBridge {

class ForkDetector;

/// Options that control how a model's outputs become advice.
struct DecisionOptions {
  enum class Rule : std::uint8_t {
    /// The advice is all outputs, unchanged.
    Outputs,
    /// The advice is the index (int64) of the greatest score along the
    /// innermost extent. If several scores are equal, the first index is
    /// chosen.
    ArgMax,
    /// The advice is an index (int64) that is sampled from softmax(output)
    /// along the innermost extent.
    Sample,
  };
  /// The rule. If neither Decide nor Output is set, the key "mlbridge.decide"
  /// of the model's metadata gives the rule, and may give the output, as in
  /// `argmax:scores`. Without this key, the rule is Outputs.
  std::optional<Rule> Decide;
  /// The name of the output with the scores. If empty, ArgMax and Sample use
  /// the output in the metadata's rule, or else the model's only output. For
  /// the rule Outputs, a non-empty name makes this output the only advice.
  std::string Output;
  /// The name of the feature that masks illegal actions. If empty, all actions
  /// are legal. The mask has one number or bool for each element of the output.
  /// An action is illegal if its element in the mask is zero, and illegal
  /// actions are never chosen. The mask has the output's shape, apart from
  /// leading extents of 1, or it has another rank and the same number of
  /// elements.
  std::string Mask;
  /// The random seed for Rule::Sample.
  std::uint64_t Seed = 0;
  /// If true, a NaN or an infinity in the model's features causes a
  /// SchemaMismatch. If unset, the key "mlbridge.finite" of the model's
  /// metadata gives the value. The default is false.
  std::optional<bool> RefuseNonFinite;

  /// Returns the names of these options in a spec: `decide`, `output`, `mask`,
  /// `seed` and `finite`.
  static Span<const std::string_view> names();
  /// Reads these options from \p Spec.
  static Expected<DecisionOptions> parse(const ModelSpec &Spec);
};

/// Evaluates models in this process.
///
/// **Features.** Each input of a model receives the feature with its name. The
/// features can have any order. Other features are ignored, so a compiler may
/// set more features than a model uses. If a feature is missing or has another
/// type, the request returns a SchemaMismatch. If a feature has a lower rank
/// than the input, it gets leading extents of 1. For example, a scalar fits
/// float[1] and a vector fits float[1,300]. If the key "mlbridge.features" of
/// the model's metadata lists features, a request must contain all of them,
/// even if some are not inputs of the graph.
///
/// **Several models.** The string feature `_agent` is the label of the model to
/// evaluate. A runner with one model without a label ignores this feature.
///
/// A model is loaded at its first request. Later requests with the same names,
/// types and shapes allocate no memory.
///
/// **fork().** A runtime's threads and locks do not survive a fork. Therefore,
/// a child process that uses its parent's runner loads the models again, unless
/// the parent has called loadBeforeFork().
class InProcessModelRunner : public MLModelRunner {
public:
  using Load = std::function<Expected<std::shared_ptr<const Model>>()>;
  /// Maps labels to functions that load the models. A model without a label has
  /// the label "".
  using LoadMap = std::map<std::string, Load, std::less<>>;

  /// Creates a runner. Messages contain \p Name, such as the spec. Errors in
  /// \p Models or \p Options are returned at the first request.
  InProcessModelRunner(std::string Name, LoadMap Models,
                       const DecisionOptions &Options = {});
  ~InProcessModelRunner() override;

  /// Returns the model with \p Label and loads it if necessary.
  Expected<const Model *> model(std::string_view Label = {});
  std::string describe() const override;
  /// Returns the metadata of the model without a label, or nullopt if the
  /// models have labels.
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;
  Error loadBeforeFork() override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  struct Agent;

  Expected<Agent *> agent(std::string_view Label);
  void abandonForked();
  Expected<Agent *> chooseAgent(Span<const TensorView> Features);
  std::string labels() const;

  std::string Name;
  std::unique_ptr<ForkDetector> Fork;
  bool KeepAfterFork = false;
  std::vector<std::unique_ptr<Agent>> Agents;
  /// The index of `_agent` among the last request's features.
  std::size_t LabelSlot = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INPROCESSMODELRUNNER_H
