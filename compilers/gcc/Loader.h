//===- Loader.h - What the two parts of the plug-in share ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares the function with which Loader.cpp starts Plugin.cpp. Include this
/// header after gcc's headers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_GCC_LOADER_H
#define MLBRIDGE_GCC_LOADER_H

/// Starts all decisions that have a model. Returns 1 after an error message.
extern "C" __attribute__((visibility("default"))) int
mlbridgeStartDecisions(plugin_name_args *Info);

#endif // MLBRIDGE_GCC_LOADER_H
