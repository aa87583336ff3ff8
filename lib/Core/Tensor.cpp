//===- Tensor.cpp - Named, typed, shaped values ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the names of element types, and the text and size of shapes.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Tensor.h"

using namespace MLBridge;

/// The names of the types, in the order of ElementType.
static constexpr std::string_view TypeNames[] = {
    "int8_t",   "int16_t",  "int32_t", "int64_t", "uint8_t", "uint16_t",
    "uint32_t", "uint64_t", "float",   "double",  "bool",    "string",
};
static_assert(std::size(TypeNames) == std::size_t(ElementType::String) + 1);

std::string_view MLBridge::elementTypeName(ElementType Type) {
  auto Index = static_cast<std::size_t>(Type);
  return Index < std::size(TypeNames) ? TypeNames[Index] : "unknown type";
}

std::optional<ElementType> MLBridge::parseElementType(std::string_view Name) {
  for (std::size_t I = 0; I < std::size(TypeNames); ++I)
    if (TypeNames[I] == Name)
      return static_cast<ElementType>(I);
  return std::nullopt;
}

std::optional<std::size_t> Shape::numElements() const {
  constexpr std::int64_t Max = (std::int64_t(1) << 60) - 1;
  bool IsEmpty = false;
  std::int64_t Product = 1;
  for (std::int64_t Extent : *this) {
    if (Extent < 0)
      return std::nullopt;
    if (Extent == 0)
      IsEmpty = true;
    else if (__builtin_mul_overflow(Product, Extent, &Product) || Product > Max)
      return std::nullopt;
  }
  return IsEmpty ? 0 : static_cast<std::size_t>(Product);
}

std::string Shape::str() const {
  std::string Text = "[";
  for (std::int64_t Extent : *this) {
    if (Text.size() > 1)
      Text += ',';
    Text += std::to_string(Extent);
  }
  return Text += ']';
}

std::string TensorView::typeStr() const {
  std::string Text(elementTypeName(Type));
  return Dims.isScalar() ? Text : Text + Dims.str();
}
