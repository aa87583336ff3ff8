//===- PrivateCopy.h - A copy that the peer cannot modify -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines PrivateCopy, a copy of a message from shared memory. It is for a
/// SerDes that cannot read a message while the peer may change it.
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
  /// Returns \p Message, or a copy of it if \p Channel uses shared memory and
  /// \p Codec cannot read shared memory. The copy is valid until the next call.
  /// Allocates memory only if a message is longer than all earlier messages.
  /// Returns System if memory runs out.
  template <typename ChannelT>
  Expected<Span<const std::byte>> copyIfShared(Span<const std::byte> Message,
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
  /// Returns an owner of the last copy, or null if the last message was not
  /// copied.
  std::shared_ptr<const void> share() const {
    return IsUsed ? Buffer.share() : nullptr;
  }

private:
  FrameBuffer Buffer;
  bool IsUsed = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SESSION_PRIVATECOPY_H
