//===- JSONValue.h - Reads a JSON value as a tensor -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readJSONValue(): reads a JSON value as a tensor. The value is a number, a
/// bool, a string, or an array of these, which may be nested. The tensor's type
/// is either expected or inferred from the value.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H

#include "MLCompilerBridge/Tensor.h"
#include "SerDes/ElementStore.h"
#include "SerDes/JSONParser.h"

namespace MLBridge::serdes {

/// The expected type of a value, and the source of the expectation.
struct TypeExpectation {
  enum class Source {
    /// There is no expectation. The type is inferred from the value.
    Value,
    /// The caller requests the type. It must represent the value exactly.
    Caller,
    /// The message declares the type. Numbers are rounded to this type.
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

/// Reads \p Value. Stores the tensor in \p Out and its elements in \p Store.
/// The errors do not name the feature:
/// - Malformed: the value is not a tensor.
/// - Unsupported: the value has too many dimensions.
/// - SchemaMismatch: the value does not have the expected type.
Error readJSONValue(ondemand::value Value, const TypeExpectation &Expected,
                    ElementStore &Store, StoredTensor &Out);

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
