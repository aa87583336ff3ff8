//===- OpenLibrary.h - Loading libraries at run time ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Support for loading modules and runtimes; openLibrary() is declared in
/// Extend/LibraryCheck.h.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H
#define MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H

#include "MLCompilerBridge/Error.h"

#include <string>

namespace MLBridge {

/// The folder of the library, plug-in or program that this code is linked into,
/// with a trailing slash; empty if unknown.
std::string ownFolder();

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H
