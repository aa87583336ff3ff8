//===- SignatureReader.h - Reads the signature of a SavedModel --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The signature of a SavedModel names the inputs and outputs among the tensors
/// of its graph. TensorFlow's C API returns it as a serialised MetaGraphDef
/// (tensorflow/core/protobuf/meta_graph.proto). This reads the few fields that
/// matter, so that a process with TensorFlow's Protobuf gets no second
/// Protobuf.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_SIGNATUREREADER_H
#define MLBRIDGE_LIB_TF_SIGNATUREREADER_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::tf {

/// An input or output of a signature.
struct SignatureTensor {
  TensorSpec Spec;
  /// The operation, and the index of its output.
  std::string Operation;
  int Index = 0;
};

struct Signature {
  /// Sorted by name.
  std::vector<SignatureTensor> Inputs;
  std::vector<SignatureTensor> Outputs;
};

/// Reads the signature \p Name of a serialised MetaGraphDef. Messages begin
/// with \p What.
///
/// Errors: InvalidArgument: the signature does not exist; the message lists the
/// existing ones. Unsupported: an input is not a dense tensor of numbers or
/// bools; such outputs are omitted, but it is an error if all are. Malformed:
/// the bytes are not a MetaGraphDef.
Expected<Signature> readSignature(std::string_view MetaGraph,
                                  std::string_view Name,
                                  const std::string &What);

/// Conversions between element types and TensorFlow's numbers; empty if there
/// is no equivalent.
int toTF(ElementType Type);
std::optional<ElementType> fromTF(int Type);

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_SIGNATUREREADER_H
