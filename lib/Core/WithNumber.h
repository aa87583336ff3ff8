//===- WithNumber.h - From an ElementType to a C++ type ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines withNumber(), which calls generic code with the C++ type of an
/// ElementType.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_CORE_WITHNUMBER_H
#define MLBRIDGE_LIB_CORE_WITHNUMBER_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

namespace MLBridge::detail {

/// Calls \p Do with a zero whose C++ type corresponds to \p Type. Returns
/// InvalidArgument if \p Type is not numeric.
template <typename Function> Error withNumber(ElementType Type, Function &&Do) {
  switch (Type) {
  case ElementType::Int8:
    return Do(std::int8_t());
  case ElementType::Int16:
    return Do(std::int16_t());
  case ElementType::Int32:
    return Do(std::int32_t());
  case ElementType::Int64:
    return Do(std::int64_t());
  case ElementType::UInt8:
    return Do(std::uint8_t());
  case ElementType::UInt16:
    return Do(std::uint16_t());
  case ElementType::UInt32:
    return Do(std::uint32_t());
  case ElementType::UInt64:
    return Do(std::uint64_t());
  case ElementType::Float:
    return Do(float());
  case ElementType::Double:
    return Do(double());
  case ElementType::Bool:
  case ElementType::String:
    break;
  }
  return {ErrorCode::InvalidArgument,
          std::string(elementTypeName(Type)) + " is not a numeric type"};
}

} // namespace MLBridge::detail

#endif // MLBRIDGE_LIB_CORE_WITHNUMBER_H
