//===- TFModelRunner.cpp - TensorFlow models in this process --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/TFModelRunner.h"

#include "InProcess/ModelsByLabel.h"
#include "Support/PrintableText.h"
#include "TF/TFModel.h"

#include <cerrno>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::tf;

/// Checks that \p Folder is a SavedModel. loadTFModel() does this first,
/// because loading the library takes a long time.
static Error checkFolder(const std::string &Folder) {
  if (::access(Folder.c_str(), F_OK) != 0)
    return Error::fromErrno(errno, "model folder '" + printable(Folder) + "'");
  for (const char *Name : {"/saved_model.pb", "/saved_model.pbtxt"})
    if (::access((Folder + Name).c_str(), R_OK) == 0)
      return Error::success();
  return {ErrorCode::Malformed,
          "model folder '" + printable(Folder) +
              "': expected a SavedModel, found no saved_model.pb"};
}

Expected<std::shared_ptr<const Model>>
MLBridge::loadTFModel(const std::string &Folder, const TFOptions &Options) {
  if (Error E = checkFolder(Folder))
    return E;
  Expected<std::shared_ptr<const Runtime>> Library = Runtime::open(Options);
  if (!Library)
    return Library.takeError();
  return TFModel::load(Folder, Options, std::move(*Library));
}

/// Returns a function that loads a folder with \p Options.
static auto loadWith(const TFOptions &Options) {
  return [Options](const std::string &Folder) {
    return loadTFModel(Folder, Options);
  };
}

TFModelRunner::TFModelRunner(const std::string &Folder,
                             const DecisionOptions &Decisions,
                             const TFOptions &Options)
    : InProcessModelRunner(
          "tf:" + Folder, inprocess::loadsOf({{"", Folder}}, loadWith(Options)),
          Decisions) {}

TFModelRunner::TFModelRunner(const std::map<std::string, std::string> &Folders,
                             const DecisionOptions &Decisions,
                             const TFOptions &Options)
    : InProcessModelRunner(inprocess::nameOf("tf", Folders),
                           inprocess::loadsOf(Folders, loadWith(Options)),
                           Decisions) {}

void MLBridge::addTF(RunnerFactory &Factory, const TFOptions &Options) {
  addModelFormat(
      Factory, {"tf",
                "tf:FOLDER or tf:LABEL=FOLDER,LABEL=FOLDER?decide=argmax&"
                "signature=NAME&runtime=LIBRARY: a SavedModel in this process, "
                "evaluated by TensorFlow",
                [Options](const std::string &Folder, const ModelSpec &Spec) {
                  TFOptions Chosen;
                  Chosen.Runtime = Spec.option("runtime", Options.Runtime);
                  Chosen.Signature =
                      Spec.option("signature", Options.Signature);
                  return loadTFModel(Folder, Chosen);
                },
                {"runtime", "signature"},
                /*Check=*/nullptr,
                /*IsFile=*/true,
                /*Parts=*/nullptr,
                /*MayBeFolder=*/true});
}
