//===- InProcessModelRunner.h - Any model in this process ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InProcessModelRunner: asks Models of any runtime, one or several by label
/// (`onnx:policy.onnx`, `aot:node=libnode.so,colour=libcolour.so`). A new
/// runtime needs no runner of its own: it gives addModelFormat()
/// (ModelFormat.h) a function that loads a file.
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

/// What is made of a model's outputs (`?decide=...`).
struct DecisionOptions {
  enum class Rule : std::uint8_t {
    /// The outputs as they are.
    Outputs,
    /// The index, an int64, of the greatest along the innermost extent; of
    /// equals the first.
    ArgMax,
    /// An index, an int64, drawn from softmax(output) along the innermost
    /// extent.
    Sample,
  };
  /// Where neither this nor Output says anything, the model's metadata does
  /// ("mlbridge.decide": a rule, or rule:output); else the outputs.
  std::optional<Rule> Decide;
  /// The output that is decided on; where it is empty that of the metadata's
  /// rule, if that chooses, or the only one. Without a rule, the only output
  /// that the caller sees.
  std::string Output;
  /// The feature, a number or bool for each element of the output, whose zeros
  /// are the illegal actions: they are never chosen. It has the output's shape,
  /// but for extents of 1 in front, or another rank and as many elements. Empty
  /// where all are legal.
  std::string Mask;
  /// Of the random numbers of Rule::Sample.
  std::uint64_t Seed = 0;
  /// Whether a NaN or an infinity among the model's features is a
  /// SchemaMismatch. Where nobody says, the model's metadata does
  /// ("mlbridge.finite"); else it is none.
  std::optional<bool> RefuseNonFinite;

  /// The names of these options in a spec: `decide`, `output`, `mask`, `seed`,
  /// `finite`.
  static Span<const std::string_view> names();
  /// Those options of \p Spec.
  static Expected<DecisionOptions> parse(const ModelSpec &Spec);
};

/// Asks models in this process.
///
/// **Which features a model gets.** Those with the names of its inputs, in any
/// order; others are left alone, since a compiler offers what it has and a
/// model takes what it knows. A missing feature, and one of another type, is a
/// SchemaMismatch. A feature of a lower rank than the input has extents of 1 in
/// front of its own: a scalar fits float[1], a vector float[1,300]. Where the
/// model's metadata lists its features ("mlbridge.features"), those that the
/// graph does not take must be there as well.
///
/// **Several models.** The feature `_agent`, a string, names the one that is
/// asked; a runner of one unlabelled model takes no notice of it.
///
/// Nothing is loaded before the first request. Once a model has been asked
/// with the same features, no request allocates.
///
/// **fork().** A runtime's threads and locks do not survive it: a child that
/// asks a runner of its parent's loads the models for itself.
class InProcessModelRunner : public MLModelRunner {
public:
  using Load = std::function<Expected<std::shared_ptr<const Model>>()>;
  /// By label; the label "" for a model that has none.
  using LoadMap = std::map<std::string, Load, std::less<>>;

  /// \p Name is for messages, such as the spec. What is wrong with \p Models or
  /// \p Options is said by the first request.
  InProcessModelRunner(std::string Name, LoadMap Models,
                       const DecisionOptions &Options = {});
  ~InProcessModelRunner() override;

  /// The model of that label, loaded if it is not yet.
  Expected<const Model *> model(std::string_view Label = {});
  std::string describe() const override;
  /// Of the model without a label; nothing where they have labels.
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  struct Agent;

  Expected<Agent *> agent(std::string_view Label);
  void abandonForked();
  Expected<Agent *> whomToAsk(Span<const TensorView> Features);
  std::string labels() const;

  std::string Name;
  std::unique_ptr<ForkDetector> Fork;
  std::vector<std::unique_ptr<Agent>> Agents;
  /// Where the last request had `_agent`.
  std::size_t LabelSlot = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INPROCESSMODELRUNNER_H
