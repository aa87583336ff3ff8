//===- ComponentSchemes.h - What components bring ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names that factories know without having them. The table of those that each
/// factory has is in Schemes.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
#define MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H

#include <algorithm>
#include <iterator>
#include <string_view>

namespace MLBridge {

/// Those that components of this project bring: that one is not there says
/// something of the installation and not of the spec.
inline constexpr std::string_view ComponentSchemes[] = {
    "aot", "aoti", "builtin", "grpc", "grpc+unix", "onnx", "tf", "tvm"};

/// Whether \p Scheme is one of those.
inline bool isComponentScheme(std::string_view Scheme) {
  return std::ranges::find(ComponentSchemes, Scheme) !=
         std::end(ComponentSchemes);
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_COMPONENTSCHEMES_H
