//===- MessagePlacement.h - Where a message lies in memory ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessagePlacement: the guarantees that every transport gives every SerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
#define MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H

#include <cstddef>

namespace MLBridge {

struct MessagePlacement {
  /// The number of readable bytes after a received message: fast parsers read
  /// past the end. Their values do not matter.
  static constexpr std::size_t Padding = 64;
  /// Messages start this many bytes after a 64-byte boundary, because the
  /// length precedes them. A SerDes may rely on this to align tensors.
  static constexpr std::size_t Offset = 8;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
