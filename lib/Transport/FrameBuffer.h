//===- FrameBuffer.h - Memory for one frame ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FrameBuffer: memory for one frame. The frame is placed so that the tensors
/// of a bitstream message are aligned. Views of a message, for example NumPy
/// arrays, can share ownership of the memory. Such views stay readable after
/// the FrameBuffer has allocated larger memory.
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
  /// The size in bytes of the length that precedes a message.
  static constexpr std::size_t PrefixSize = MessagePlacement::Offset;
  /// The number of usable bytes before data(). These bytes can store a frame's
  /// number. Therefore, a message has the same address with and without a
  /// number.
  static constexpr std::size_t LeadSize = 8;

  /// Returns the address of the length. The message begins PrefixSize bytes
  /// later.
  std::byte *data() const { return Memory.get() + Alignment; }
  /// Returns the number of bytes for the length and the message. They are
  /// followed by MessagePlacement::Padding more bytes.
  std::size_t capacity() const { return Capacity; }
  std::shared_ptr<const void> share() const { return Memory; }

  /// Makes capacity() at least \p Size. Preserves the first \p Keep bytes and
  /// the LeadSize bytes before data(). Returns a System error if memory runs
  /// out.
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
