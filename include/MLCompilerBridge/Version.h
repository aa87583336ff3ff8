//===- Version.h - The version of this library ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the library's version. CMake also reads this file.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_VERSION_H
#define MLCOMPILERBRIDGE_VERSION_H

#define MLBRIDGE_VERSION "0.1.0"

#endif // MLCOMPILERBRIDGE_VERSION_H
