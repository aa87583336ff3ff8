//===- ComponentSchemes.h - Schemes of optional components ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Schemes that a factory may lack although this project provides them.
/// Schemes.cpp lists those that every factory has.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
#define MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H

#include <algorithm>
#include <iterator>
#include <string_view>

namespace MLBridge {

/// Schemes that components of this project provide. If one is missing, the
/// installation is incomplete but the spec may be correct.
inline constexpr std::string_view ComponentSchemes[] = {
    "aot", "aoti", "builtin", "grpc", "grpc+unix", "onnx", "tf", "tvm"};

/// True if a component of this project provides \p Scheme.
inline bool isComponentScheme(std::string_view Scheme) {
  return std::ranges::find(ComponentSchemes, Scheme) !=
         std::end(ComponentSchemes);
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
