//===- PrivateCopy.h - Messages that nobody can change ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PrivateCopy: of a message in memory that its writer can still write to,
/// where the SerDes looks twice and must find the same both times.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SESSION_PRIVATECOPY_H
#define MLBRIDGE_LIB_SESSION_PRIVATECOPY_H

#include "Transport/FrameBuffer.h"

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/Span.h"

namespace MLBridge {

class PrivateCopy {
public:
  /// What \p Codec may be given of \p Message from \p Channel: the message, or
  /// a copy that is valid until the next call. Allocates only for a message
  /// that is longer than any before.
  template <typename ChannelT>
  Expected<Span<const std::byte>> unlessSafe(Span<const std::byte> Message,
                                             const ChannelT &Channel,
                                             const BaseSerDes &Codec) {
    IsUsed = Channel.isShared() && !Codec.readsSharedMemory();
    if (!IsUsed)
      return Message;
    constexpr std::size_t Start = BaseSerDes::MessageOffset;
    if (Error E = Buffer.grow(Start + Message.size(), 0))
      return E;
    if (!Message.empty())
      std::memcpy(Buffer.data() + Start, Message.data(), Message.size());
    return Span<const std::byte>(Buffer.data() + Start, Message.size());
  }
  /// Keeps the last message's memory alive, if that was copied.
  std::shared_ptr<const void> share() const {
    return IsUsed ? Buffer.share() : nullptr;
  }

private:
  FrameBuffer Buffer;
  bool IsUsed = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SESSION_PRIVATECOPY_H
