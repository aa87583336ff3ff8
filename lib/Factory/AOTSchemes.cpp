//===- AOTSchemes.cpp - Compiled models as schemes ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/AOTSchemes.h"

#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;

RunnerFactory::Scheme MLBridge::aotScheme() {
  return modelScheme(
      {.Scheme = "aot",
       .Help = "aot:FILE.so: a model compiled by `mlbridge compile`",
       .Load =
           [](const std::string &File, const ModelSpec &Spec) {
             return loadAOTModel(File, Spec.option("cpu", {}));
           },
       .Options = {"cpu"}});
}

RunnerFactory::Scheme
MLBridge::builtinScheme(std::vector<const MLBridgeAOTModel *> Models) {
  // Remove models without a name, because no spec can name them.
  std::erase_if(Models, [](const MLBridgeAOTModel *Descriptor) {
    return !Descriptor || !Descriptor->name;
  });
  std::string Names;
  for (const MLBridgeAOTModel *Descriptor : Models)
    Names += (Names.empty() ? "" : ", ") + std::string(Descriptor->name);
  auto Load =
      [Models = std::move(Models),
       Names](const std::string &Name,
              const ModelSpec &Spec) -> Expected<std::shared_ptr<const Model>> {
    for (const MLBridgeAOTModel *Descriptor : Models)
      if (Descriptor->name == Name)
        return wrapAOTModel(*Descriptor, "builtin:" + Name,
                            Spec.option("cpu", {}));
    return Error(ErrorCode::InvalidArgument,
                 "builtin:" + printable(Name) +
                     ": unknown model; this program contains " +
                     (Names.empty() ? "no models" : Names));
  };
  // Check the name of a single model early. The names of labelled models are
  // checked at the first request.
  auto Check = [Load](const ModelSpec &Spec) {
    return Spec.Path.find('=') == std::string::npos
               ? Load(Spec.Path, Spec).takeError()
               : Error::success();
  };
  return modelScheme({.Scheme = "builtin",
                      .Help = "builtin:NAME: a model contained in this "
                              "program: " +
                              Names,
                      .Load = Load,
                      .Options = {"cpu"},
                      .Check = Check,
                      .IsFile = false});
}
