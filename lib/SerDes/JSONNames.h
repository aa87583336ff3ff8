//===- JSONNames.h - Reserved words of the JSON format ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reserved words that the writer and the reader of JSON messages share.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H

#include <string_view>

namespace MLBridge::serdes {

struct JSONNames {
  /// The key of the types that the values do not imply.
  static constexpr std::string_view Types = "_types";
  /// The spelling of non-finite numbers, as in Protobuf's JSON mapping.
  static constexpr std::string_view NaN = "NaN";
  static constexpr std::string_view Infinity = "Infinity";
  static constexpr std::string_view NegativeInfinity = "-Infinity";
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
