//===- InputMerge.h - Many small inputs as one ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mergeInputs(): ONNX Runtime takes 0.2 us to be handed an input, however
/// small, and compilers have dozens of numbers. Most graphs do nothing to them
/// but put them in a row. Then the row can be the input, and who asks writes
/// each feature to its place in it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_INPUTMERGE_H
#define MLBRIDGE_LIB_ONNX_INPUTMERGE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace MLBridge::onnx {

/// An extent of an input: a number, or the name of one that is free.
struct FileExtent {
  std::int64_t Number = 0;
  std::string Name;

  friend bool operator==(const FileExtent &A, const FileExtent &B) {
    return A.Number == B.Number && A.Name == B.Name;
  }
};

/// An input as the file says it.
struct FileInput {
  std::string Name;
  /// Of TensorProto.DataType.
  std::int64_t Type = 0;
  std::vector<FileExtent> Dims;
};

/// An input that stands for several.
struct MergedInput {
  std::string Name;
  /// Those, in their order: they have the same first Axis extents, which are
  /// this one's, and behind them fixed ones.
  std::vector<FileInput> Parts;
  std::size_t Axis = 0;
};

struct MergedModel {
  /// Of the model with the merged inputs, which else is the same.
  std::string Bytes;
  std::vector<MergedInput> Merged;
  /// The names of all inputs that the file has, in its order.
  std::vector<std::string> Inputs;
};

/// Merges the inputs that one Concat only reads, by itself or by an Unsqueeze
/// that makes columns of scalars. Nothing where there are none, or where
/// \p File is no model or changes meanwhile. It must have its weights in it.
std::optional<MergedModel> mergeInputs(const std::string &File);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_INPUTMERGE_H
