//===- ONNXModelRunner.cpp - ONNX models in this process ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

#include "Core/InvalidSpec.h"
#include "InProcess/FileStamp.h"
#include "InProcess/ModelsByLabel.h"
#include "ONNX/ONNXFile.h"
#include "ONNX/ONNXModel.h"

#include <algorithm>

using namespace MLBridge;
using namespace MLBridge::onnx;

Expected<std::shared_ptr<const Model>>
MLBridge::loadONNXModel(const std::string &File, const ONNXOptions &Options) {
  // Check the files first, because ONNX Runtime would wait forever for a FIFO.
  if (Error E = inprocess::FileStamp::of(File).takeError())
    return E;
  const FileSurvey Facts = survey(File);
  if (Error E = inprocess::FileStamp::ofParts(Facts.paths(File)).takeError())
    return E;
  if (Error E = Facts.check(File))
    return E;
  Expected<std::shared_ptr<const Runtime>> Library = Runtime::open(Options);
  if (!Library)
    return Library.takeError();
  return ONNXModel::load(File, Facts, Options, std::move(*Library));
}

/// Returns a function that loads a file with \p Options.
static auto loadWith(const ONNXOptions &Options) {
  return [Options](const std::string &File) {
    return loadONNXModel(File, Options);
  };
}

ONNXModelRunner::ONNXModelRunner(const std::string &File,
                                 const DecisionOptions &Decisions,
                                 const ONNXOptions &Options)
    : InProcessModelRunner("onnx:" + File,
                           inprocess::loadsOf({{"", File}}, loadWith(Options)),
                           Decisions) {}

ONNXModelRunner::ONNXModelRunner(
    const std::map<std::string, std::string> &Files,
    const DecisionOptions &Decisions, const ONNXOptions &Options)
    : InProcessModelRunner(inprocess::nameOf("onnx", Files),
                           inprocess::loadsOf(Files, loadWith(Options)),
                           Decisions) {}

/// Splits the option \p Key at its commas. Returns \p Default if the spec lacks
/// the option, and InvalidArgument if an item is empty.
static Expected<std::vector<std::string>>
listOption(const ModelSpec &Spec, std::string_view Key,
           const std::vector<std::string> &Default) {
  std::string_view Left = Spec.option(Key, {});
  if (!Left.data())
    return Default;
  std::vector<std::string> Items;
  for (;;) {
    const std::size_t End = std::min(Left.find(','), Left.size());
    if (End == 0)
      return invalidSpec(Spec, "option '" + std::string(Key) +
                                   "': expected items separated by commas, "
                                   "found an empty item");
    Items.emplace_back(Left.substr(0, End));
    if (End == Left.size())
      return Items;
    Left.remove_prefix(End + 1);
  }
}

/// Returns \p Default, changed by the options of \p Spec.
static Expected<ONNXOptions> parseOptions(const ModelSpec &Spec,
                                          const ONNXOptions &Default) {
  ONNXOptions Chosen;
  Chosen.Runtime = Spec.option("runtime", Default.Runtime);
  auto Providers = listOption(Spec, "provider", Default.Providers);
  if (!Providers)
    return Providers.takeError();
  auto Libraries = listOption(Spec, "ops", Default.OperatorLibraries);
  if (!Libraries)
    return Libraries.takeError();
  Chosen.Providers = std::move(*Providers);
  Chosen.OperatorLibraries = std::move(*Libraries);
  return Chosen;
}

void MLBridge::addONNX(RunnerFactory &Factory, const ONNXOptions &Options) {
  addModelFormat(
      Factory,
      {"onnx",
       "onnx:FILE or "
       "onnx:LABEL=FILE,LABEL=FILE?decide=argmax&provider=cuda,cpu&"
       "ops=LIBRARY&runtime=LIBRARY: a model in this process, evaluated by "
       "ONNX Runtime",
       [Options](const std::string &File, const ModelSpec &Spec)
           -> Expected<std::shared_ptr<const Model>> {
         Expected<ONNXOptions> Chosen = parseOptions(Spec, Options);
         if (!Chosen)
           return Chosen.takeError();
         return loadONNXModel(File, *Chosen);
       },
       {"runtime", "provider", "ops"},
       [](const ModelSpec &Spec) { return parseOptions(Spec, {}).takeError(); },
       /*IsFile=*/true,
       partsOf});
}
