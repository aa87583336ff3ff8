//===- InProcess.cpp - Models in this process, from Python ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Binds the schemes of in-process models, which mlbridge.inprocess uses. Also
/// binds Decision, which turns a model's outputs into advice, for models that
/// Python runs.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "FromPython.h"
#include "ToPython.h"

#include "InProcess/Decision.h"
#include "InProcess/ModelMetadata.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace MLBridge::Python {

namespace {

/// The name, outputs and metadata of a model that Python runs.
class DescribedModel : public Model {
public:
  DescribedModel(std::string Name, std::vector<TensorSpec> Outputs,
                 Metadata About)
      : Model(std::move(Name), {}, std::move(Outputs), std::move(About)) {}

  Expected<std::unique_ptr<ModelCursor>> open() const override {
    return Error(ErrorCode::Unsupported, name() + " is run by Python");
  }
};

/// The Python class mlbridge._core.Decision. It wraps inprocess::Decision and
/// decides from one output.
class DecisionInPython {
public:
  DecisionInPython(const nb::str &Name, const nb::dict &About,
                   const nb::dict &OutputTypes, std::uint64_t Seed)
      : Described(toString(Name), specs(OutputTypes), entries(About)),
        RefusesNonFinite(valueOrRaise(inprocess::refusesNonFinite(Described))),
        Rules(valueOrRaise(
            inprocess::Decision::create(Described, optionsOf(Seed)))),
        Outputs(Described.outputs().size()) {}

  nb::object output() const {
    std::optional<std::size_t> Index = Rules.output();
    return Index ? toStr(Described.outputs()[*Index].Name) : nb::none();
  }
  bool chooses() const { return Rules.chooses(); }
  bool refusesNonFinite() const { return RefusesNonFinite; }

  nb::object choose(nb::handle Scores) {
    if (!Rules.chooses())
      raise({ErrorCode::InvalidArgument,
             Described.name() + ": the advice is an output, not a choice"});
    TensorsFromPython Given("output");
    Given.add(Described.outputs()[*Rules.output()].Name, Scores);
    Outputs[*Rules.output()] = Given.features().tensors().front();
    Advice Chosen = valueOrRaise(Rules.decide(Outputs, {}));
    return copyArray(Chosen.tensors().front());
  }

private:
  static std::vector<TensorSpec> specs(const nb::dict &OutputTypes) {
    std::vector<TensorSpec> Specs;
    for (auto [Name, Type] : OutputTypes) {
      TensorSpec &Spec = Specs.emplace_back();
      Spec.Name = toString(nb::borrow<nb::str>(Name));
      Spec.Type = adviceSpecOf(nb::cast<std::string>(Type), false).Type;
      Spec.HasAnyRank = true;
    }
    return Specs;
  }
  static Model::Metadata entries(const nb::dict &About) {
    Model::Metadata Entries;
    for (auto [Key, Value] : About)
      Entries.emplace_back(toString(nb::borrow<nb::str>(Key)),
                           toString(nb::borrow<nb::str>(Value)));
    return Entries;
  }
  static DecisionOptions optionsOf(std::uint64_t Seed) {
    DecisionOptions Options;
    Options.Seed = Seed;
    return Options;
  }

  DescribedModel Described;
  bool RefusesNonFinite;
  inprocess::Decision Rules;
  /// The tensor of each output. Only the tensor of the deciding output is set.
  std::vector<TensorView> Outputs;
};

} // namespace

/// Returns the schemes that in-process models add to a factory.
static nb::list inProcessSchemes([[maybe_unused]] std::string ONNXRuntime) {
  RunnerFactory Factory;
  const std::size_t NumOthers = Factory.schemes().size();
#ifdef MLBRIDGE_HAS_ONNX
  ONNXOptions Options;
  Options.Runtime = std::move(ONNXRuntime);
  addONNX(Factory, Options);
#endif
  nb::list Added;
  for (const RunnerFactory::Scheme &S : Factory.schemes().subspan(NumOthers))
    Added.append(nb::cast(S));
  return Added;
}

void bindInProcess(nb::module_ &M) {
  M.def(
      "in_process_schemes", inProcessSchemes, nb::arg("onnxruntime") = "",
      nb::sig("def in_process_schemes(onnxruntime: str = '') -> "
              "list[Scheme]"),
      "Returns the schemes of in-process models. Runners made with the same "
      "schemes share their models. onnxruntime is the library to load, unless "
      "a spec or the environment names a library.");
  nb::class_<DecisionInPython>(
      M, "Decision",
      "Turns a model's outputs into advice, as the model's metadata specify "
      "(docs/reference/model-metadata.md). Used by one thread at a time.")
      .def(nb::init<const nb::str &, const nb::dict &, const nb::dict &,
                    std::uint64_t>(),
           nb::arg("model"), nb::arg("metadata"), nb::arg("outputs"),
           nb::arg("seed") = 0,
           nb::sig("def __init__(self, model: str, metadata: dict[str, str], "
                   "outputs: dict[str, str], seed: int = 0) -> None"),
           "outputs maps each output's name to its element type. Raises "
           "Malformed if the metadata have unknown values, and SchemaMismatch "
           "if the metadata do not fit the outputs.")
      .def_prop_ro("output", &DecisionInPython::output,
                   nb::sig("def output(self) -> str | None"),
                   "The only output that is used. None if all outputs are "
                   "used.")
      .def_prop_ro("chooses", &DecisionInPython::chooses,
                   "True if the advice is an index into the output.")
      .def_prop_ro("refuses_non_finite", &DecisionInPython::refusesNonFinite,
                   "True if NaN and infinite features are refused.")
      .def("choose", &DecisionInPython::choose, nb::arg("scores"),
           nb::sig("def choose(self, scores: numpy.ndarray) -> numpy.ndarray"),
           "Returns the chosen int64 index for each row of scores along the "
           "innermost extent. Raises SchemaMismatch for an empty row. Raises "
           "ModelError if a score is NaN, or if the greatest score is "
           "infinite and the rule is `sample`.");
}

} // namespace MLBridge::Python
