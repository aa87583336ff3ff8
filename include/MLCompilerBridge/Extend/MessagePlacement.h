//===- MessagePlacement.h - A message's place in memory ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines MessagePlacement: guarantees about a message's place in memory.
/// Every transport gives these guarantees to every SerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
#define MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H

#include <cstddef>

namespace MLBridge {

struct MessagePlacement {
  /// The number of readable bytes after a received message. Fast parsers read
  /// past the end of the message, but ignore these bytes.
  static constexpr std::size_t Padding = 64;
  /// A message starts this number of bytes after a 64-byte boundary, because an
  /// 8-byte length precedes the message. A SerDes may use this fact to align
  /// tensors.
  static constexpr std::size_t Offset = 8;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
