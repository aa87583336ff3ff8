//===- PrivateCopy.h - A copy that the peer cannot modify -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PrivateCopy: a private copy of a message in shared memory, for a SerDes that
/// must not see the message change while it reads.
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
  /// Returns \p Message from \p Channel, or a copy if the memory is shared and
  /// \p Codec does not support that. The copy is valid until the next call.
  /// Allocates only for a message longer than all earlier ones. System if
  /// memory runs out.
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
  /// An owner of the last copy; null if the last message was not copied.
  std::shared_ptr<const void> share() const {
    return IsUsed ? Buffer.share() : nullptr;
  }

private:
  FrameBuffer Buffer;
  bool IsUsed = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SESSION_PRIVATECOPY_H
