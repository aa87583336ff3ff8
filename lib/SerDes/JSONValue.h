//===- JSONValue.h - Reads a JSON value as a tensor -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readJSONValue(): reads a number, bool, string or (nested) array of those as
/// a tensor of the expected or inferred type.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H

#include "MLCompilerBridge/Tensor.h"
#include "SerDes/ElementStore.h"
#include "SerDes/JSONParser.h"

namespace MLBridge::serdes {

/// The expected type of a value, and its source.
struct TypeExpectation {
  enum class Source {
    /// No expectation: infer the type from the value.
    Value,
    /// The caller requests this type, which must represent the value exactly.
    Caller,
    /// The message declares this type. Numbers are rounded to it.
    Message,
  };
  Source From = Source::Value;
  ElementType Type = ElementType::UInt8;
};

/// A tensor whose elements are in an ElementStore.
struct StoredTensor {
  ElementType Type = ElementType::UInt8;
  Shape Dims;
  std::size_t Offset = 0;
  std::size_t NumBytes = 0;
  std::size_t FirstLength = 0;
  std::size_t NumLengths = 0;

  friend bool operator==(const StoredTensor &A,
                         const StoredTensor &B) = default;
};

/// Reads \p Value to \p Out and its elements to \p Store. Errors, which do not
/// name the feature: Malformed if the value is not a tensor, Unsupported for
/// too many dimensions, SchemaMismatch if it does not have the expected type.
Error readJSONValue(ondemand::value Value, const TypeExpectation &Expected,
                    ElementStore &Store, StoredTensor &Out);

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
