//===- FrameBuffer.h - Memory for one frame ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FrameBuffer: memory for one frame, placed so that the tensors of a bitstream
/// message are aligned. Its ownership can be shared, so that views of a message
/// (such as NumPy arrays) stay readable after a larger buffer has replaced it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_FRAMEBUFFER_H
#define MLBRIDGE_LIB_TRANSPORT_FRAMEBUFFER_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Extend/MessagePlacement.h"

#include <cstring>
#include <memory>
#include <new>

namespace MLBridge {

class FrameBuffer {
public:
  static constexpr std::size_t Alignment = 64;
  /// The size of the length before a message.
  static constexpr std::size_t PrefixSize = MessagePlacement::Offset;
  /// Usable bytes before data(), for a frame's number, which must not move the
  /// message.
  static constexpr std::size_t LeadSize = 8;

  /// The address of the length; the message follows at PrefixSize bytes.
  std::byte *data() const { return Memory.get() + Alignment; }
  /// Bytes for prefix and message; MessagePlacement::Padding more follow.
  std::size_t capacity() const { return Capacity; }
  std::shared_ptr<const void> share() const { return Memory; }

  /// Makes capacity() at least \p Size. Preserves the first \p Keep bytes and
  /// the LeadSize bytes before data(). System if memory runs out.
  Error grow(std::size_t Size, std::size_t Keep) {
    if (Size <= Capacity)
      return Error::success();
    constexpr std::align_val_t Align{Alignment};
    auto *Fresh = static_cast<std::byte *>(::operator new(
        Alignment + Size + MessagePlacement::Padding, Align, std::nothrow));
    if (!Fresh)
      return Error(ErrorCode::System, "out of memory for a message of " +
                                          std::to_string(Size) + " bytes");
    std::shared_ptr<std::byte[]> Larger(
        Fresh, [](std::byte *P) { ::operator delete(P, Align); });
    if (Memory)
      std::memcpy(Fresh + Alignment - LeadSize, data() - LeadSize,
                  LeadSize + Keep);
    Memory = std::move(Larger);
    Capacity = Size;
    return Error::success();
  }

private:
  std::shared_ptr<std::byte[]> Memory;
  std::size_t Capacity = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_FRAMEBUFFER_H
