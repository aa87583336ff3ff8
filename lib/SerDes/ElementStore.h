//===- ElementStore.h - Memory for decoded tensors --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ElementStore: memory for decoded elements. Formats use it if a tensor's view
/// cannot point into the message. The store is refilled for each message. If
/// two consecutive messages have the same layout, their elements have the same
/// addresses.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_ELEMENTSTORE_H
#define MLCOMPILERBRIDGE_LIB_SERDES_ELEMENTSTORE_H

#include "MLCompilerBridge/Span.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace MLBridge::serdes {

/// The elements of tensors, and the lengths of strings. The memory may move
/// when an element is appended. Therefore, use offsets rather than addresses
/// until the message is complete.
class ElementStore {
public:
  /// The alignment of arrays in bytes, chosen for vector instructions.
  static constexpr std::size_t Alignment = 64;

  /// Removes the elements, but keeps their memory.
  void clear() {
    Used = 0;
    NumLengths = 0;
    // Allocate memory even if there will be no elements, because an empty
    // tensor needs an address, too.
    reserve(1);
  }

  /// Returns the offset of the next element.
  std::size_t size() const { return Used; }
  /// Adds padding until size() is a multiple of \p To, and returns size(). \p
  /// To must be a power of two and at most Alignment.
  std::size_t align(std::size_t To) {
    std::size_t Gap = -Used & (To - 1);
    reserve(Gap);
    return Used += Gap;
  }
  template <typename T> void push(T Value) { push(&Value, sizeof(T)); }
  void push(const void *Data, std::size_t NumBytes) {
    std::byte *Room = extend(NumBytes);
    if (NumBytes != 0)
      std::memcpy(Room, Data, NumBytes);
  }
  /// Appends \p NumBytes uninitialized bytes and returns their address. The
  /// caller must write them before the next push().
  std::byte *extend(std::size_t NumBytes) {
    reserve(NumBytes);
    Used += NumBytes;
    return Memory.get() + Used - NumBytes;
  }
  /// Returns the address of \p Offset. The address is valid until the next
  /// push().
  std::byte *at(std::size_t Offset) const { return Memory.get() + Offset; }

  std::size_t numLengths() const { return NumLengths; }
  void pushLength(std::uint64_t Length) {
    if (NumLengths == Lengths.size())
      Lengths.push_back(Length);
    HasChanged |= Lengths[NumLengths] != Length;
    Lengths[NumLengths++] = Length;
  }
  void truncateLengths(std::size_t Count) { NumLengths = Count; }
  Span<const std::uint64_t> lengths(std::size_t First,
                                    std::size_t Count) const {
    return {Lengths.data() + First, Count};
  }

  /// Returns true if an address or a length has changed since the last call.
  bool takeChange() {
    bool Changed = HasChanged || Lengths.data() != LastLengths;
    LastLengths = Lengths.data();
    HasChanged = false;
    return Changed;
  }
  /// Returns shared ownership of the elements' memory.
  std::shared_ptr<const void> memory() const { return Memory; }

private:
  void reserve(std::size_t NumBytes) {
    if (NumBytes > Capacity - Used)
      grow(NumBytes);
  }
  void grow(std::size_t NumBytes);

  /// The memory of the elements. The pointers that memory() has returned share
  /// its ownership.
  std::shared_ptr<std::byte> Memory;
  std::size_t Capacity = 0;
  std::size_t Used = 0;
  std::vector<std::uint64_t> Lengths;
  std::size_t NumLengths = 0;
  const std::uint64_t *LastLengths = nullptr;
  bool HasChanged = false;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_ELEMENTSTORE_H
