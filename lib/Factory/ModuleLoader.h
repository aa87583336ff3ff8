//===- ModuleLoader.h - Schemes out of MLBridge-NAME.so ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds and loads the module for a scheme that is not built in.
/// RunnerModule.h says where it is looked for.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_MODULELOADER_H
#define MLBRIDGE_LIB_FACTORY_MODULELOADER_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Extend/RunnerModule.h"

#include <string>
#include <string_view>

namespace MLBridge::modules {

/// "MLBridge-grpc.so" for `grpc` and for `grpc+unix`.
std::string moduleFileFor(std::string_view Scheme);

/// The module for \p Scheme, which stays loaded for good: who knows where its
/// code is in use. Null where there is none; Unsupported where there is one
/// that cannot be used.
Expected<const RunnerModule *> loadModule(std::string_view Scheme);

} // namespace MLBridge::modules

#endif // MLBRIDGE_LIB_FACTORY_MODULELOADER_H
