//===- JSONNames.h - Reserved words of the JSON format ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reserved words of JSON messages. The writer and the reader share them.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H

#include <string_view>

namespace MLBridge::serdes {

struct JSONNames {
  /// The key under which a message declares types that its values do not imply.
  static constexpr std::string_view Types = "_types";
  /// The spellings of non-finite numbers. They are the same as in Protobuf's
  /// JSON mapping.
  static constexpr std::string_view NaN = "NaN";
  static constexpr std::string_view Infinity = "Infinity";
  static constexpr std::string_view NegativeInfinity = "-Infinity";
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONNAMES_H
