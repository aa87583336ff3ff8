//===- ReservedNames.h - Names reserved for the protocol --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the names of the tensors that the protocol itself uses. A feature
/// must not have one of these names. docs/reference/wire-format.md explains
/// each name.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_RESERVEDNAMES_H
#define MLCOMPILERBRIDGE_EXTEND_RESERVEDNAMES_H

#include <string_view>

namespace MLBridge {

struct ReservedNames {
  static constexpr std::string_view Ready = "_ready";
  static constexpr std::string_view Command = "_command";
  static constexpr std::string_view Seed = "_seed";
  static constexpr std::string_view Options = "_options";
  static constexpr std::string_view Reward = "_reward";
  static constexpr std::string_view Terminated = "_terminated";
  static constexpr std::string_view Truncated = "_truncated";
  static constexpr std::string_view Agent = "_agent";
  static constexpr std::string_view Info = "_info";
  static constexpr std::string_view Error = "_error";
  static constexpr std::string_view Code = "_code";
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_RESERVEDNAMES_H
