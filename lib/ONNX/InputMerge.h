//===- InputMerge.h - Merges a model's small inputs -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mergeInputs(): ONNX Runtime takes 0.2 us to receive an input of any size,
/// and compilers have dozens of numbers. Most graphs only concatenate them. The
/// concatenated tensor then becomes the input, and ONNXCursor writes each
/// feature to its place in it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_INPUTMERGE_H
#define MLBRIDGE_LIB_ONNX_INPUTMERGE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace MLBridge::onnx {

/// An extent of an input: a number, or the name of a free extent.
struct FileExtent {
  std::int64_t Number = 0;
  std::string Name;

  friend bool operator==(const FileExtent &A, const FileExtent &B) {
    return A.Number == B.Number && A.Name == B.Name;
  }
};

/// An input as the file describes it.
struct FileInput {
  std::string Name;
  /// A value of TensorProto.DataType.
  std::int64_t Type = 0;
  std::vector<FileExtent> Dims;
};

/// An input that replaces several.
struct MergedInput {
  std::string Name;
  /// The replaced inputs, in their order. Their first Axis extents are equal
  /// and belong to the merged input; the other extents are fixed.
  std::vector<FileInput> Parts;
  std::size_t Axis = 0;
};

struct MergedModel {
  /// The rewritten file, which differs only in the merged inputs.
  std::string Bytes;
  std::vector<MergedInput> Merged;
  /// The names of all inputs of the original file, in its order.
  std::vector<std::string> Inputs;
};

/// Merges inputs that only one Concat reads, directly or through an Unsqueeze
/// that turns scalars into columns. Empty if there are no such inputs, if \p
/// File is not a model, or if it changes during the call. The file must contain
/// its weights.
std::optional<MergedModel> mergeInputs(const std::string &File);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_INPUTMERGE_H
