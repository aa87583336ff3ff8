//===- AOTDescriptor.h - Reads the descriptor of a compiled model -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readDescriptor(): reads the inputs, outputs and code of a compiled model
/// from its C structures. The library may not come from `mlbridge compile`, so
/// each pointer and count is checked before use.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_AOT_AOTDESCRIPTOR_H
#define MLBRIDGE_LIB_AOT_AOTDESCRIPTOR_H

#include "MLCompilerBridge-C/AOTModel.h"
#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::aot {

struct DescribedModel {
  std::vector<TensorSpec> Inputs, Outputs;
  Model::Metadata About;
  const MLBridgeAOTVariant *Variant = nullptr;
};

/// Reads \p Descriptor and selects the variant for \p CPU or, if that is empty,
/// the widest that this CPU can run. Errors, which lack the model's name:
/// Malformed or Unsupported.
Expected<DescribedModel> readDescriptor(const MLBridgeAOTModel &Descriptor,
                                        std::string_view CPU);

} // namespace MLBridge::aot

#endif // MLBRIDGE_LIB_AOT_AOTDESCRIPTOR_H
