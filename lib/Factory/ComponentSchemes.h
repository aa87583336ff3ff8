//===- ComponentSchemes.h - Schemes of optional components ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lists the schemes of this project's optional components. A factory may lack
/// these schemes. Schemes.cpp adds the schemes that every factory has.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
#define MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H

#include <algorithm>
#include <iterator>
#include <string_view>

namespace MLBridge {

/// The schemes of this project's components. If a spec names one of these
/// schemes and the factory lacks the scheme, the component is probably not
/// installed.
inline constexpr std::string_view ComponentSchemes[] = {
    "aot", "aoti", "builtin", "grpc", "grpc+unix", "onnx", "tf", "tvm"};

/// Returns whether a component of this project provides \p Scheme.
inline bool isComponentScheme(std::string_view Scheme) {
  return std::ranges::find(ComponentSchemes, Scheme) !=
         std::end(ComponentSchemes);
}

/// Returns whether a component of this project provides \p Scheme in a module.
/// The library itself contains `aot`, and each program adds its own `builtin`.
inline bool isModuleScheme(std::string_view Scheme) {
  return isComponentScheme(Scheme) && Scheme != "aot" && Scheme != "builtin";
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
