//===- AOTDescriptor.h - What a generated model says of itself --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readDescriptor(): from the C structures of a generated model to a model's
/// inputs, outputs and code. A library need not have been made by `mlbridge
/// compile`, so each pointer and each count is looked at before it is used.
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

/// What \p Descriptor says, with the variant for \p CPU, or if that is empty
/// the widest that this CPU can run. Malformed or Unsupported, without the
/// model's name, where it cannot be used.
Expected<DescribedModel> readDescriptor(const MLBridgeAOTModel &Descriptor,
                                        std::string_view CPU);

} // namespace MLBridge::aot

#endif // MLBRIDGE_LIB_AOT_AOTDESCRIPTOR_H
