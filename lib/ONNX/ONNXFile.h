//===- ONNXFile.h - Facts that ONNX Runtime does not report -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// survey(): reads facts from a model's file, without reading the model's
/// weights.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXFILE_H
#define MLBRIDGE_LIB_ONNX_ONNXFILE_H

#include "MLCompilerBridge/Error.h"

#include <set>
#include <string>
#include <vector>

namespace MLBridge::onnx {

struct FileSurvey {
  /// The names of inputs and outputs without a shape. ONNX Runtime reports them
  /// as scalars.
  std::set<std::string> InputsOfAnyRank, OutputsOfAnyRank;
  /// The files that contain this model's external tensors. Their paths are
  /// relative to the model's folder.
  std::set<std::string> ExternalFiles;

  /// Returns the paths of the ExternalFiles. \p File is the model.
  std::vector<std::string> paths(const std::string &File) const;
  /// Returns Malformed if one of the ExternalFiles is outside the folder of the
  /// model \p File. A model could otherwise read any file of the user. If an
  /// external file is a link, its target is checked. If \p File itself is a
  /// link, the external files may also be in the folder with its target.
  Error check(const std::string &File) const;
};

/// Surveys the model in \p File. Returns an empty result if \p File is not an
/// ONNX model. ONNX Runtime reports the error later.
FileSurvey survey(const std::string &File);

/// Returns the paths of the ExternalFiles of \p File.
std::vector<std::string> partsOf(const std::string &File);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXFILE_H
