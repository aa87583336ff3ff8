//===- Messages.h - Messages without a transport ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Messages and comparisons for tests of SerDes, which have no transport. A
/// message's memory has exactly the promised size and alignment, so that
/// sanitizers find every access outside it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_MESSAGES_H
#define MLBRIDGE_TESTS_SUPPORT_MESSAGES_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include <cstring>
#include <memory>
#include <new>
#include <string>

namespace MLBridge::test {

/// A message in memory, with the layout in which a transport lends it.
class Message {
public:
  explicit Message(std::size_t Size)
      : Size(Size), Memory(static_cast<std::byte *>(::operator new(
                        BaseSerDes::MessageOffset + Size + BaseSerDes::Padding,
                        Alignment))) {
    // The contents of the padding must not matter. Use brackets, because they
    // are most likely to mislead a parser.
    std::byte *Padding = Memory.get() + BaseSerDes::MessageOffset + Size;
    for (std::size_t I = 0; I < BaseSerDes::Padding; ++I)
      Padding[I] = std::byte("}]"[I % 2]);
  }
  explicit Message(std::string_view Bytes) : Message(Bytes.size()) {
    Bytes.copy(reinterpret_cast<char *>(region().data()), Bytes.size());
  }

  Span<std::byte> region() {
    return {Memory.get() + BaseSerDes::MessageOffset, Size};
  }
  Span<const std::byte> bytes() const {
    return {Memory.get() + BaseSerDes::MessageOffset, Size};
  }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(bytes().data()), Size};
  }
  void truncate(std::size_t NewSize) { Size = NewSize; }

private:
  static constexpr std::align_val_t Alignment{64};
  struct Delete {
    void operator()(std::byte *Memory) const {
      ::operator delete(Memory, Alignment);
    }
  };

  std::size_t Size;
  std::unique_ptr<std::byte, Delete> Memory;
};

/// True if \p Writer serializes \p Tensors into \p Region, needs at most the
/// size that it promised, and \p Reader accepts the message.
inline bool passes(BaseSerDes &Writer, BaseSerDes &Reader,
                   Span<const TensorView> Tensors, Message &Region) {
  Writer.cleanUp();
  for (const TensorView &Tensor : Tensors)
    Writer.setFeature(Tensor);
  Expected<std::size_t> Bound = Writer.getMaxSerializedSize();
  Expected<std::size_t> Size = Writer.getSerializedData(Region.region());
  return Bound && Size && *Size <= *Bound &&
         Reader.deserialize(Region.bytes().subspan(0, *Size));
}

/// Serializes \p Tensors into a message.
inline Expected<Message> serialize(BaseSerDes &Codec,
                                   Span<const TensorView> Tensors) {
  Codec.cleanUp();
  for (const TensorView &Tensor : Tensors)
    Codec.setFeature(Tensor);
  Expected<std::size_t> Bound = Codec.getMaxSerializedSize();
  if (!Bound)
    return Bound.takeError();
  Message Result(*Bound);
  Expected<std::size_t> Size = Codec.getSerializedData(Result.region());
  Codec.cleanUp();
  if (!Size)
    return Size.takeError();
  Result.truncate(*Size);
  return Result;
}

/// Returns the first bitwise difference between \p A and \p B, or an empty
/// string. The order of tensors may differ, because the bitstream sorts them.
inline std::string difference(Span<const TensorView> A,
                              Span<const TensorView> B) {
  if (A.size() != B.size())
    return std::to_string(A.size()) + " tensors became " +
           std::to_string(B.size());
  for (const TensorView &Left : A) {
    std::string Name(Left.Name);
    const TensorView *Right = nullptr;
    for (const TensorView &Candidate : B)
      if (Candidate.Name == Left.Name)
        Right = &Candidate;
    if (!Right)
      return Name + " is gone";
    if (Left.Type != Right->Type || Left.Dims != Right->Dims)
      return Name + ": " + Left.typeStr() + " became " + Right->typeStr();
    if (Left.NumBytes != Right->NumBytes)
      return Name + ": " + std::to_string(Left.NumBytes) + " bytes became " +
             std::to_string(Right->NumBytes);
    if (Left.NumBytes != 0 &&
        std::memcmp(Left.Data, Right->Data, Left.NumBytes) != 0)
      return Name + ": its elements changed";
    if (Left.Lengths.size() != Right->Lengths.size())
      return Name + ": its number of strings changed";
    for (std::size_t I = 0; I < Left.Lengths.size(); ++I)
      if (Left.Lengths[I] != Right->Lengths[I])
        return Name + ": the length of a string changed";
  }
  return {};
}

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_MESSAGES_H
