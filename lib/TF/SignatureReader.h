//===- SignatureReader.h - Reads the signature of a SavedModel --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the signature of a SavedModel. The signature specifies which tensors
/// of the graph are the inputs and outputs. TensorFlow's C API returns the
/// signature as a serialised MetaGraphDef
/// (tensorflow/core/protobuf/meta_graph.proto). This reader decodes only the
/// few fields that it needs. It does not use the Protobuf library, so the
/// process does not contain a second Protobuf in addition to TensorFlow's.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_SIGNATUREREADER_H
#define MLBRIDGE_LIB_TF_SIGNATUREREADER_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::tf {

/// An input or output of a signature.
struct SignatureTensor {
  TensorSpec Spec;
  /// The operation that produces the tensor, and the index among its outputs.
  std::string Operation;
  int Index = 0;
};

struct Signature {
  /// The inputs and outputs, sorted by name.
  std::vector<SignatureTensor> Inputs;
  std::vector<SignatureTensor> Outputs;
};

/// Reads the signature \p Name of a serialised MetaGraphDef. The error messages
/// begin with \p What. The errors are:
/// - InvalidArgument: the signature does not exist. The message lists the
///   existing signatures.
/// - Unsupported: an input is not a dense tensor of numbers or bools, or there
///   are no dense outputs. If only some outputs are dense, the other outputs
///   are omitted.
/// - Malformed: the bytes are not a MetaGraphDef.
Expected<Signature> readSignature(std::string_view MetaGraph,
                                  std::string_view Name,
                                  const std::string &What);

/// Functions that convert between element types and TensorFlow's type numbers.
/// fromTF() returns nullopt if there is no equivalent.
int toTF(ElementType Type);
std::optional<ElementType> fromTF(int Type);

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_SIGNATUREREADER_H
