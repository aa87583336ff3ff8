//===- InputMerge.h - Merges a model's small inputs -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mergeInputs(): replaces many inputs of an ONNX model by one input. ONNX
/// Runtime needs 0.2 us to receive an input of any size, and compilers have
/// dozens of scalar features. Most graphs only concatenate these features.
/// mergeInputs() makes the concatenated tensor an input instead. ONNXCursor
/// then copies each feature to its place in that tensor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_INPUTMERGE_H
#define MLBRIDGE_LIB_ONNX_INPUTMERGE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace MLBridge::onnx {

/// An extent of an input. It is a number, or the name of a free extent.
struct FileExtent {
  std::int64_t Number = 0;
  std::string Name;

  friend bool operator==(const FileExtent &A, const FileExtent &B) {
    return A.Number == B.Number && A.Name == B.Name;
  }
};

/// An input, as the file describes it.
struct FileInput {
  std::string Name;
  /// The element type, as a value of TensorProto.DataType.
  std::int64_t Type = 0;
  std::vector<FileExtent> Dims;
};

/// An input that replaces several inputs of the original file.
struct MergedInput {
  std::string Name;
  /// The replaced inputs, in their order. Their extents before Axis are equal,
  /// and the merged input has the same extents there. Their extents from Axis
  /// on are fixed numbers.
  std::vector<FileInput> Parts;
  std::size_t Axis = 0;
};

struct MergedModel {
  /// The rewritten file. It differs from the original only in the merged
  /// inputs.
  std::string Bytes;
  std::vector<MergedInput> Merged;
  /// The names of all inputs of the original file, in the original order.
  std::vector<std::string> Inputs;
};

/// Reads the model in \p File. Merges inputs if one Concat node reads them and
/// no other node does. The Concat may read a scalar input through an Unsqueeze,
/// which converts the scalar to a column. The file must contain its weights.
///
/// Returns nullopt if there are no such inputs, if \p File is not a model, or
/// if \p File changes during the call.
std::optional<MergedModel> mergeInputs(const std::string &File);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_INPUTMERGE_H
