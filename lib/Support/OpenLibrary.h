//===- OpenLibrary.h - Libraries that are found at run time -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// dlopen() for modules and runtimes: a file that would end the process or keep
/// it waiting is refused first, and what went wrong is an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H
#define MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H

#include "MLCompilerBridge/Error.h"

#include <string>

namespace MLBridge {

/// The folder of the library, plug-in or program that this code is linked into,
/// with its slash; empty where that is not known.
std::string ownFolder();

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_OPENLIBRARY_H
