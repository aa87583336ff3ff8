//===- InProcessModelRunner.h - Models in this process ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InProcessModelRunner: evaluates Models of any runtime, one or several by
/// label (`onnx:policy.onnx`, `aot:node=libnode.so,colour=libcolour.so`). A new
/// runtime needs no runner class: pass a function that loads a file to
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

/// How a model's outputs become advice (`?decide=...`).
struct DecisionOptions {
  enum class Rule : std::uint8_t {
    /// The outputs, unchanged.
    Outputs,
    /// The index (int64) of the greatest score along the innermost extent; the
    /// first of equals.
    ArgMax,
    /// An index (int64) drawn from softmax(output) along the innermost extent.
    Sample,
  };
  /// If neither this nor Output is set, the model's metadata decides
  /// ("mlbridge.decide": a rule, or rule:output); default: Outputs.
  std::optional<Rule> Decide;
  /// The output to decide on. If empty: the output of the metadata's rule, if
  /// that rule chooses, or else the model's only output. Without a rule, the
  /// only output that the caller sees.
  std::string Output;
  /// The feature that masks illegal actions: a number or bool for each element
  /// of the output, zero if the action is illegal. Illegal actions are never
  /// chosen. The mask has the output's shape, apart from leading extents of 1,
  /// or another rank and the same number of elements. Empty: all actions are
  /// legal.
  std::string Mask;
  /// Random seed for Rule::Sample.
  std::uint64_t Seed = 0;
  /// True: a NaN or an infinity in the model's features is a SchemaMismatch. If
  /// unset, the model's metadata decides ("mlbridge.finite"); default: false.
  std::optional<bool> RefuseNonFinite;

  /// The names of these options in a spec: `decide`, `output`, `mask`, `seed`,
  /// `finite`.
  static Span<const std::string_view> names();
  /// Reads these options from \p Spec.
  static Expected<DecisionOptions> parse(const ModelSpec &Spec);
};

/// Evaluates models in this process.
///
/// **Which features a model gets.** The features with the names of its inputs,
/// in any order. Other features are ignored, so a compiler can offer more than
/// a model takes. A missing feature, or one of another type, is a
/// SchemaMismatch. A feature of a lower rank than the input gets leading
/// extents of 1: a scalar fits float[1], a vector float[1,300]. If the model's
/// metadata lists its features ("mlbridge.features"), the listed features that
/// the graph does not take are required as well.
///
/// **Several models.** The feature `_agent`, a string, names the model to
/// evaluate. A runner with one unlabelled model ignores it.
///
/// Models are loaded at the first request. A model that has already been
/// evaluated with the same features allocates nothing in a request.
///
/// **fork().** A runtime's threads and locks do not survive a fork. A child
/// that uses its parent's runner loads the models again.
class InProcessModelRunner : public MLModelRunner {
public:
  using Load = std::function<Expected<std::shared_ptr<const Model>>()>;
  /// By label; the label is "" for a model without one.
  using LoadMap = std::map<std::string, Load, std::less<>>;

  /// Messages contain \p Name, such as the spec. Errors in \p Models or \p
  /// Options appear at the first request.
  InProcessModelRunner(std::string Name, LoadMap Models,
                       const DecisionOptions &Options = {});
  ~InProcessModelRunner() override;

  /// The model with \p Label, which is loaded if necessary.
  Expected<const Model *> model(std::string_view Label = {});
  std::string describe() const override;
  /// The metadata of the model without a label; empty if the models have
  /// labels.
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;

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
  std::vector<std::unique_ptr<Agent>> Agents;
  /// The index of `_agent` among the last request's features.
  std::size_t LabelSlot = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INPROCESSMODELRUNNER_H
