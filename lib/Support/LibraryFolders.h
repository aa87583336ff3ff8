//===- LibraryFolders.h - Folders to search for libraries -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// libraryFolders(): where modules and runtimes may be installed.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H
#define MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H

#include <string>
#include <vector>

namespace MLBridge {

/// The folders to search before the dynamic linker does, without a trailing
/// slash: the folder of the library, plug-in or program that contains this
/// code, the library folder of the same installation (PREFIX/lib for a program
/// in PREFIX/bin), and the library folder that the build was configured with.
std::vector<std::string> libraryFolders();

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_LIBRARYFOLDERS_H
