//===- AOTDescriptor.h - Reads a compiled model's descriptor ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readDescriptor(): reads the inputs, outputs and code of a compiled model
/// from its C structures. Another program may have made the library, so
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

/// Reads \p Descriptor and selects the variant for \p CPU. If \p CPU is empty,
/// selects the widest variant that this CPU can run. Returns a Malformed or
/// Unsupported error, whose message does not contain the model's name.
Expected<DescribedModel> readDescriptor(const MLBridgeAOTModel &Descriptor,
                                        std::string_view CPU);

} // namespace MLBridge::aot

#endif // MLBRIDGE_LIB_AOT_AOTDESCRIPTOR_H
