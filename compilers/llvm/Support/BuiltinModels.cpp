//===- BuiltinModels.cpp - Models in the plug-in --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lists the descriptors of the built-in models. A reference to a descriptor
/// makes the linker add the model to the plug-in. CMakeLists.txt writes
/// BuiltinModels.def, which has MLBRIDGE_BUILTIN_MODEL(name) for each model.
///
//===----------------------------------------------------------------------===//

#include "Support/BuiltinModels.h"

// `mlbridge compile` generates these names. They follow C's naming style,
// because C programs can use compiled models too.
extern "C" {
#define MLBRIDGE_BUILTIN_MODEL(NAME)                                           \
  extern const MLBridgeAOTModel mlbridge_aot_model_##NAME;
#include "BuiltinModels.def"
#undef MLBRIDGE_BUILTIN_MODEL
}

std::vector<const MLBridgeAOTModel *> MLBridge::builtinModels() {
  return {
#define MLBRIDGE_BUILTIN_MODEL(NAME) &mlbridge_aot_model_##NAME,
#include "BuiltinModels.def"
#undef MLBRIDGE_BUILTIN_MODEL
  };
}
