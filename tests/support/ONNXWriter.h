//===- ONNXWriter.h - Writes ONNX files -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXWriter: writes small ONNX models, valid and invalid, to files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_ONNXWRITER_H
#define MLBRIDGE_TESTS_SUPPORT_ONNXWRITER_H

#include "MLCompilerBridge/Tensor.h"

#include <string>
#include <variant>
#include <vector>

namespace MLBridge::test {

class ONNXWriter {
public:
  /// A number, or the name of an extent that may have any size.
  using Extent = std::variant<std::int64_t, std::string>;
  using Attribute =
      std::pair<std::string, std::variant<std::int64_t, std::string>>;

  ONNXWriter &input(const std::string &Name, ElementType Type,
                    const std::vector<Extent> &Extents);
  ONNXWriter &output(const std::string &Name, ElementType Type,
                     const std::vector<Extent> &Extents);
  /// Adds an input without a shape.
  ONNXWriter &inputOfAnyRank(const std::string &Name, ElementType Type);
  ONNXWriter &outputOfAnyRank(const std::string &Name, ElementType Type);
  /// Adds an output that is a sequence of tensors of \p Type.
  ONNXWriter &sequenceOutput(const std::string &Name, ElementType Type);
  ONNXWriter &node(const std::string &Operator,
                   const std::vector<std::string> &Inputs,
                   const std::vector<std::string> &Outputs,
                   const std::vector<Attribute> &Attributes = {});
  /// Adds a node whose operator is not one of ONNX's own.
  ONNXWriter &customNode(const std::string &Operator, const std::string &Domain,
                         const std::vector<std::string> &Inputs,
                         const std::vector<std::string> &Outputs);
  /// Adds a node whose attribute "body" is the graph of \p Body.
  ONNXWriter &nodeWithBody(const std::string &Operator,
                           const std::vector<std::string> &Inputs,
                           const std::vector<std::string> &Outputs,
                           const ONNXWriter &Body);
  ONNXWriter &constant(const std::string &Name, const Shape &Dims,
                       const std::vector<float> &Values);
  ONNXWriter &constant(const std::string &Name, const Shape &Dims,
                       const std::vector<std::int64_t> &Values);
  /// Adds a constant whose first elements are given. The other elements are 0.
  ONNXWriter &sparseConstant(const std::string &Name, const Shape &Dims,
                             const std::vector<std::int64_t> &Values);
  /// Adds a constant whose floats are in \p File, in the model's folder.
  ONNXWriter &externalConstant(const std::string &Name, const Shape &Dims,
                               const std::string &File);
  ONNXWriter &metadata(const std::string &Key, const std::string &Value);
  ONNXWriter &opset(int Version) {
    Opset = Version;
    return *this;
  }

  std::string bytes() const;
  /// Writes the file \p Path and returns \p Path.
  std::string write(const std::string &Path) const;

private:
  std::string Graph, Metadata, CustomOpsets;
  int Opset = 17;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_ONNXWRITER_H
