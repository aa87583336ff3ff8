//===- MessagePlacement.h - Where a message lies in memory ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessagePlacement: what every transport does for every SerDes, so that
/// neither has to know the other.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
#define MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H

#include <cstddef>

namespace MLBridge {

struct MessagePlacement {
  /// Bytes that must be readable behind a message that was received: fast
  /// parsers read past the end. Their values do not matter.
  static constexpr std::size_t Padding = 64;
  /// Messages start this many bytes behind a 64-byte boundary (a transport
  /// puts the length there), which a SerDes may use to align tensors.
  static constexpr std::size_t Offset = 8;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MESSAGEPLACEMENT_H
