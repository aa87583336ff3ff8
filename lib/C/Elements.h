//===- Elements.h - Element types of the C API ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts an MLBridgeElementType to an ElementType.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_ELEMENTS_H
#define MLBRIDGE_LIB_C_ELEMENTS_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

namespace MLBridge::C {

/// Converts any element type. Returns InvalidArgument for an unknown type.
Expected<ElementType> elementType(MLBridgeElementType Type);
/// Converts any type except String. There are separate functions for strings.
Expected<ElementType> numberType(MLBridgeElementType Type);

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_ELEMENTS_H
