//===- ModuleLoader.h - Loads MLBridge-NAME.so ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds and loads the module for a scheme that is not built in. RunnerModule.h
/// lists the folders that are searched.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_MODULELOADER_H
#define MLBRIDGE_LIB_FACTORY_MODULELOADER_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Extend/RunnerModule.h"

#include <string>
#include <string_view>

namespace MLBridge::modules {

/// Returns the file name of the module for \p Scheme. For example, the module
/// for `grpc` and for `grpc+unix` is "MLBridge-grpc.so".
std::string moduleFileFor(std::string_view Scheme);

/// Loads the module for \p Scheme. Returns null if no module is found. If the
/// module cannot be used, returns an error, for example Unsupported if it has
/// another version. A module is never unloaded, because its code may still be
/// in use.
Expected<const RunnerModule *> loadModule(std::string_view Scheme);

/// Returns a text for messages, such as "no module MLBridge-grpc.so in
/// MLBRIDGE_MODULES (not set), /usr/bin, ...". For a module of this project,
/// the text also explains how to find or install the module.
std::string describeMissing(std::string_view Scheme);

} // namespace MLBridge::modules

#endif // MLBRIDGE_LIB_FACTORY_MODULELOADER_H
