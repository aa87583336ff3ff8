//===- Schemes.h - The schemes that this library knows ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one table of schemes. A new scheme is one line of it; a transport is one
/// line of the table in InterProcessSpec.cpp, which this one and
/// EnvironmentServer take in.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_SCHEMES_H
#define MLBRIDGE_LIB_FACTORY_SCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include <string_view>
#include <vector>

namespace MLBridge {

/// Those that every RunnerFactory begins with.
std::vector<RunnerFactory::Scheme> builtInSchemes();

/// Whether a component of this project brings that scheme, so that its lack
/// says something of the installation and not of the spec.
bool isComponentScheme(std::string_view Scheme);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_SCHEMES_H
