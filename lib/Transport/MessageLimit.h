//===- MessageLimit.h - The limit on the size of messages -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkMessageSize(): the limit on outgoing messages, for all transports.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_MESSAGELIMIT_H
#define MLBRIDGE_LIB_TRANSPORT_MESSAGELIMIT_H

#include "MLCompilerBridge/Error.h"

#include <string>

namespace MLBridge {

/// Checks that a message of \p Size bytes may be sent to \p Peer. Returns an
/// InvalidArgument error if the message exceeds \p MaxMessage bytes.
inline Error checkMessageSize(std::size_t Size, std::size_t MaxMessage,
                              const std::string &Peer) {
  if (Size <= MaxMessage)
    return Error::success();
  return Error(ErrorCode::InvalidArgument,
               "a message of " + std::to_string(Size) + " bytes for " + Peer +
                   " exceeds the limit of " + std::to_string(MaxMessage) +
                   " (max-message)");
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_MESSAGELIMIT_H
