//===- Model.cpp - A model loaded into this process -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/Model.h"

#include "Support/PrintableText.h"

using namespace MLBridge;

std::string TensorSpec::typeStr() const {
  std::string Text(elementTypeName(Type));
  if (HasAnyRank)
    return Text + "[...]";
  if (Dims.isScalar())
    return Text;
  Text += '[';
  for (std::int64_t Extent : Dims) {
    if (Text.back() != '[')
      Text += ',';
    Text += Extent < 0 ? "?" : std::to_string(Extent);
  }
  return Text += ']';
}

ModelCursor::~ModelCursor() = default;

Expected<Span<const TensorView>>
ModelCursor::runUntil(Span<const TensorView> Inputs, Deadline) {
  return run(Inputs);
}

Model::Model(std::string Given, std::vector<TensorSpec> Inputs,
             std::vector<TensorSpec> Outputs, Metadata About)
    : Name(std::move(Given)), Inputs(std::move(Inputs)),
      Outputs(std::move(Outputs)), About(std::move(About)) {
  // Limit the name, because all error messages contain it.
  Name = printable(Name, 2 * MostPrinted);
}

Model::~Model() = default;

const std::string *Model::metadata(std::string_view Key) const {
  for (const auto &[Name, Value] : About)
    if (Name == Key)
      return &Value;
  return nullptr;
}
