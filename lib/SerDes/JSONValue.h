//===- JSONValue.h - One JSON value to one tensor ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readJSONValue(): a number, bool, string or (nested) array of those becomes a
/// tensor, of the type that is expected or of the one that the value suggests.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H

#include "MLCompilerBridge/Tensor.h"
#include "SerDes/ElementStore.h"
#include "SerDes/JSONParser.h"

namespace MLBridge::serdes {

/// What is known of a value's type before it is read.
struct TypeExpectation {
  enum class Source {
    /// Nothing: the value says.
    Value,
    /// The caller would like this type, if the value has it exactly.
    Caller,
    /// The message declares it. Numbers are then read as the nearest of that
    /// type, as they were meant.
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

/// Reads \p Value to \p Out and its elements to \p Store. Errors, without the
/// feature's name: Malformed for what is no tensor, Unsupported for too many
/// dimensions, SchemaMismatch for what is not of the expected type.
Error readJSONValue(ondemand::value Value, const TypeExpectation &Expected,
                    ElementStore &Store, StoredTensor &Out);

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONVALUE_H
