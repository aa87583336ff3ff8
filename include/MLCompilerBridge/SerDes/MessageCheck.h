//===- MessageCheck.h - Checks of a message's tensors -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines MessageCheck, for authors of a SerDes. Every SerDes must make these
/// checks when it writes a message and when it reads a message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_MESSAGECHECK_H
#define MLCOMPILERBRIDGE_SERDES_MESSAGECHECK_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <memory>

namespace MLBridge {

namespace serdes {
class Schema;
} // namespace serdes

/// Checks the tensors of messages. Use one object for many messages, because it
/// allocates no memory while names, types and shapes do not change. Only one
/// thread at a time may use the object.
class MessageCheck {
public:
  MessageCheck();
  ~MessageCheck();

  /// Returns an error with the code \p Code for the first problem of
  /// \p Tensors. A writer passes InvalidArgument, and a reader passes
  /// Malformed. These are problems:
  /// - A name that is empty, duplicate or not UTF-8.
  /// - A shape, size and lengths that contradict each other.
  /// - A bool that is neither 0 nor 1.
  /// - Text that is not UTF-8.
  Error operator()(Span<const TensorView> Tensors, ErrorCode Code);

private:
  std::unique_ptr<serdes::Schema> Last;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_MESSAGECHECK_H
