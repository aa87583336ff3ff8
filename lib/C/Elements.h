//===- Elements.h - Element types of the C API ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts the C API's number of an element type to an ElementType.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_ELEMENTS_H
#define MLBRIDGE_LIB_C_ELEMENTS_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

namespace MLBridge::C {

/// Any element type.
Expected<ElementType> elementType(MLBridgeElementType Type);
/// Any type except String, which has separate functions.
Expected<ElementType> numberType(MLBridgeElementType Type);

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_ELEMENTS_H
