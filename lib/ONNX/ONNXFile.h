//===- ONNXFile.h - What ONNX Runtime does not tell of a file ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// survey(): a look at a model's file, past its weights.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXFILE_H
#define MLBRIDGE_LIB_ONNX_ONNXFILE_H

#include <set>
#include <string>
#include <vector>

namespace MLBridge::onnx {

struct FileSurvey {
  /// Inputs and outputs without a shape: ONNX Runtime shows them as scalars.
  std::set<std::string> InputsOfAnyRank, OutputsOfAnyRank;
  /// Where tensors that are not in the file are, by paths from its folder.
  std::set<std::string> ExternalFiles;
};

/// Finds nothing where \p File is no ONNX model: what is wrong with it,
/// ONNX Runtime says.
FileSurvey survey(const std::string &File);

/// The paths of ExternalFiles, for \p File.
std::vector<std::string> partsOf(const std::string &File);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXFILE_H
