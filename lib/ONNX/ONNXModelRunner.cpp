//===- ONNXModelRunner.cpp - ONNX models in this process ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

#include "InProcess/FileStamp.h"
#include "InProcess/ModelsByLabel.h"
#include "ONNX/ONNXFile.h"
#include "ONNX/ONNXModel.h"

using namespace MLBridge;
using namespace MLBridge::onnx;

Expected<std::shared_ptr<const Model>>
MLBridge::loadONNXModel(const std::string &File, const ONNXOptions &Options) {
  // Check the files first, because ONNX Runtime would wait forever for a FIFO.
  if (Error E = inprocess::FileStamp::of(File).takeError())
    return E;
  if (Error E = inprocess::FileStamp::ofParts(partsOf(File)).takeError())
    return E;
  Expected<std::shared_ptr<const Runtime>> Library = Runtime::open(Options);
  if (!Library)
    return Library.takeError();
  return ONNXModel::load(File, std::move(*Library));
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

void MLBridge::addONNX(RunnerFactory &Factory, const ONNXOptions &Options) {
  addModelFormat(
      Factory,
      {"onnx",
       "onnx:FILE or onnx:LABEL=FILE,LABEL=FILE?decide=argmax&runtime=LIBRARY: "
       "a model in this process, evaluated by ONNX Runtime",
       [Options](const std::string &File, const ModelSpec &Spec) {
         ONNXOptions Chosen;
         Chosen.Runtime = Spec.option("runtime", Options.Runtime);
         return loadONNXModel(File, Chosen);
       },
       {"runtime"},
       /*Check=*/nullptr,
       /*IsFile=*/true,
       partsOf});
}
