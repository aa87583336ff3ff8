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
/// makes the linker add the model to the plug-in.
///
//===----------------------------------------------------------------------===//

#include "BuiltinModels.h"

// `mlbridge compile` generates these names. They follow C's naming style,
// because C programs can use compiled models too.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
#ifdef MLBRIDGE_HAS_IMITATION
extern const MLBridgeAOTModel mlbridge_aot_model_imitation;
#endif
#ifdef MLBRIDGE_HAS_PHASE_ORDERING_OZ
extern const MLBridgeAOTModel mlbridge_aot_model_phase_ordering_oz;
#endif
#ifdef MLBRIDGE_HAS_REGALLOC_EVICTION
extern const MLBridgeAOTModel mlbridge_aot_model_regalloc_eviction;
#endif
}
// NOLINTEND(readability-identifier-naming)

std::vector<const MLBridgeAOTModel *> MLBridge::builtinModels() {
  return {
#ifdef MLBRIDGE_HAS_IMITATION
      &mlbridge_aot_model_imitation,
#endif
#ifdef MLBRIDGE_HAS_PHASE_ORDERING_OZ
      &mlbridge_aot_model_phase_ordering_oz,
#endif
#ifdef MLBRIDGE_HAS_REGALLOC_EVICTION
      &mlbridge_aot_model_regalloc_eviction,
#endif
  };
}
