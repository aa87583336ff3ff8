//===- MessageCheck.h - What no message may hold ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageCheck: what every SerDes has to refuse, when it writes and when it
/// reads. For those who write one.
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

/// Kept from message to message, it allocates nothing while names, types and
/// shapes stay. Used by one thread at a time.
class MessageCheck {
public:
  MessageCheck();
  ~MessageCheck();

  /// The first thing that is wrong with \p Tensors: a name that is empty, there
  /// twice or not UTF-8; a shape, size and lengths that contradict each other;
  /// a bool that is neither 0 nor 1; text that is not UTF-8. As an error of
  /// \p Code: InvalidArgument for a writer, Malformed for a reader.
  Error operator()(Span<const TensorView> Tensors, ErrorCode Code);

private:
  std::unique_ptr<serdes::Schema> Last;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_MESSAGECHECK_H
