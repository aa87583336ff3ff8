//===- SignatureReader.h - What a SavedModel takes and gives ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The signature of a SavedModel: which tensors of its graph are the inputs and
/// outputs, by which names. TensorFlow's C API hands it out as a serialised
/// MetaGraphDef (tensorflow/core/protobuf/meta_graph.proto); the few fields
/// that matter are read here, so that no second Protobuf comes into a process
/// that TensorFlow's own is in.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_SIGNATUREREADER_H
#define MLBRIDGE_LIB_TF_SIGNATUREREADER_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::tf {

/// An input or output of a signature.
struct SignatureTensor {
  TensorSpec Spec;
  /// The operation whose output it is, and which of its outputs.
  std::string Operation;
  int Index = 0;
};

struct Signature {
  /// By name, in the order of the names.
  std::vector<SignatureTensor> Inputs;
  std::vector<SignatureTensor> Outputs;
};

/// Reads the signature \p Name of a serialised MetaGraphDef. \p What is for
/// messages.
///
/// InvalidArgument: there is none of that name; the text lists those there are.
/// Unsupported: an input is no dense tensor of numbers or bools. Outputs of
/// which that is true are left out, unless there are no others. Malformed: the
/// bytes are no MetaGraphDef.
Expected<Signature> readSignature(std::string_view MetaGraph,
                                  std::string_view Name,
                                  const std::string &What);

/// TensorFlow's number for the type of an element, and the other way round,
/// where there is one.
int toTF(ElementType Type);
std::optional<ElementType> fromTF(int Type);

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_SIGNATUREREADER_H
