//===- Elements.cpp - Element types of the C API --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Elements.h"

using namespace MLBridge;

static_assert(int(ElementType::Int8) == MLBridgeElementInt8 &&
              int(ElementType::Int16) == MLBridgeElementInt16 &&
              int(ElementType::Int32) == MLBridgeElementInt32 &&
              int(ElementType::Int64) == MLBridgeElementInt64 &&
              int(ElementType::UInt8) == MLBridgeElementUInt8 &&
              int(ElementType::UInt16) == MLBridgeElementUInt16 &&
              int(ElementType::UInt32) == MLBridgeElementUInt32 &&
              int(ElementType::UInt64) == MLBridgeElementUInt64 &&
              int(ElementType::Float) == MLBridgeElementFloat &&
              int(ElementType::Double) == MLBridgeElementDouble &&
              int(ElementType::Bool) == MLBridgeElementBool &&
              int(ElementType::String) == MLBridgeElementString);
static_assert(sizeof(bool) == 1, "C's bool is a tensor element");

Expected<ElementType> C::elementType(MLBridgeElementType Type) {
  // Check the number, because C does not restrict the values of an enum.
  const int Number = static_cast<int>(Type);
  if (Number < MLBridgeElementInt8 || Number > MLBridgeElementString)
    return Error(ErrorCode::InvalidArgument,
                 "expected an MLBridgeElementType, found " +
                     std::to_string(Number));
  return static_cast<ElementType>(Number);
}

Expected<ElementType> C::numberType(MLBridgeElementType Type) {
  if (Type == MLBridgeElementString)
    return Error(ErrorCode::InvalidArgument,
                 "strings have separate functions, such as "
                 "mlbridgeSetString() and mlbridgeGetString()");
  return elementType(Type);
}
