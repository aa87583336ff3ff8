//===- BuiltinModels.cpp - The models in the plug-in ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Their list. What is linked into the plug-in for each is its descriptor, and
/// what that leads to.
///
//===----------------------------------------------------------------------===//

#include "BuiltinModels.h"

#ifdef MLBRIDGE_HAS_IMITATION
// The name is of `mlbridge compile`'s making, for C as well.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" const MLBridgeAOTModel mlbridge_aot_model_imitation;
#endif

std::vector<const MLBridgeAOTModel *> MLBridge::builtinModels() {
#ifdef MLBRIDGE_HAS_IMITATION
  return {&mlbridge_aot_model_imitation};
#else
  return {};
#endif
}
