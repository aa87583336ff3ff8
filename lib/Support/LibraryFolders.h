//===- LibraryFolders.h - Folders to search for libraries -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines libraryFolders(), which returns the folders in which modules and
/// runtimes may be installed.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H
#define MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H

#include <string>
#include <vector>

namespace MLBridge {

/// Returns the folders to search before the dynamic linker searches its own
/// folders. The paths have no trailing slashes. The folders are:
/// - The folder of the library, plug-in or program that contains this code.
/// - If that folder is PREFIX/bin, the library folder of PREFIX (PREFIX/lib).
/// - The library folder of the prefix with which this library was configured.
std::vector<std::string> libraryFolders();

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H
