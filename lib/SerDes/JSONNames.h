//===- JSONNames.h - The JSON format's own words ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the writer and the reader of JSON messages must spell alike.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H

#include <string_view>

namespace MLBridge::serdes {

struct JSONNames {
  /// The key that says the types which the values do not.
  static constexpr std::string_view Types = "_types";
  /// Numbers that JSON has no number for, as Protobuf's JSON spells them.
  static constexpr std::string_view NaN = "NaN";
  static constexpr std::string_view Infinity = "Infinity";
  static constexpr std::string_view NegativeInfinity = "-Infinity";
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
