//===- MessageCheck.h - Checks of a message's tensors -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageCheck: the checks that every SerDes must make, when it writes and
/// when it reads. For authors of a SerDes.
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

/// Keep one for many messages: it does not allocate while names, types and
/// shapes do not change. Used by one thread at a time.
class MessageCheck {
public:
  MessageCheck();
  ~MessageCheck();

  /// Returns the first problem of \p Tensors: a name that is empty, duplicate
  /// or not UTF-8; shape, size and lengths that contradict each other; a bool
  /// that is neither 0 nor 1; text that is not UTF-8. \p Code is the error's
  /// code: InvalidArgument for a writer, Malformed for a reader.
  Error operator()(Span<const TensorView> Tensors, ErrorCode Code);

private:
  std::unique_ptr<serdes::Schema> Last;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_MESSAGECHECK_H
