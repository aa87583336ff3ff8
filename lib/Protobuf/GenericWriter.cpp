//===- GenericWriter.cpp - Writes tensors to generic messages -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/GenericWriter.h"

#include "Protobuf/Wire.h"

#include <cstring>

namespace MLBridge::protobuf {

//===----------------------------------------------------------------------===//
// The skeleton
//===----------------------------------------------------------------------===//

static void appendVarint(std::string &To, std::uint64_t Value) {
  std::uint8_t Bytes[10];
  std::uint8_t *End = CodedOutputStream::WriteVarint64ToArray(Value, Bytes);
  To.append(Bytes, End);
}

static void appendTag(std::string &To, int Field, Format::WireType Type) {
  appendVarint(To, Format::MakeTag(Field, Type));
}

/// Appends a tag, and the length of the \p NumBytes bytes that follow.
static void appendLength(std::string &To, int Field, std::size_t NumBytes) {
  appendTag(To, Field, Format::WIRETYPE_LENGTH_DELIMITED);
  appendVarint(To, NumBytes);
}

static void appendShape(std::string &To, const Shape &Dims) {
  if (Dims.isScalar())
    return;
  std::size_t Size = 0;
  for (std::int64_t Extent : Dims)
    Size += CodedOutputStream::VarintSize64(static_cast<std::uint64_t>(Extent));
  appendLength(To, GenericFields::Shape, Size);
  for (std::int64_t Extent : Dims)
    appendVarint(To, static_cast<std::uint64_t>(Extent));
}

/// Returns the size in bytes of a string of \p Length in Tensor.strings,
/// including its tag.
static std::size_t sizeOfString(std::uint64_t Length) {
  return 1 + CodedOutputStream::VarintSize64(Length) + Length;
}

/// Appends a padding field, so that the elements of \p Tensor are aligned.
/// Without padding, the elements would start \p Offset bytes after a 64-byte
/// boundary. Large tensors are aligned for vector instructions.
static void appendPadding(std::string &To, const TensorView &Tensor,
                          std::size_t Offset) {
  constexpr std::size_t VectorAlignment = 64;
  std::size_t Alignment = elementSize(Tensor.Type);
  if (Alignment > 1 && Tensor.NumBytes >= VectorAlignment)
    Alignment = VectorAlignment;
  std::size_t Gap = -Offset & (Alignment - 1);
  // The size of an empty padding field, which consists of its tag and its
  // length.
  constexpr std::size_t Least = 2;
  if (Gap == 0)
    return;
  if (Gap < Least)
    Gap += Alignment;
  appendLength(To, GenericFields::Padding, Gap - Least);
  To.append(Gap - Least, '\0');
}

void GenericWriter::addTensor(Span<const TensorView> Features,
                              std::size_t Index) {
  const TensorView &Tensor = Features[Index];
  const bool IsText = Tensor.Type == ElementType::String;
  Body.clear();
  appendLength(Body, GenericFields::Name, Tensor.Name.size());
  Body += Tensor.Name;
  appendTag(Body, GenericFields::Type, Format::WIRETYPE_VARINT);
  appendVarint(Body, GenericFields::numberOf(Tensor.Type));
  appendShape(Body, Tensor.Dims);
  std::size_t Rest = Tensor.NumBytes;
  if (Tensor.isStringList()) {
    Rest = 0;
    for (std::uint64_t Length : Tensor.Lengths)
      Rest += sizeOfString(Length);
  } else if (IsText) {
    Rest = sizeOfString(Tensor.NumBytes);
  } else if (Tensor.NumBytes != 0) {
    appendLength(Body, GenericFields::Data, Tensor.NumBytes);
  }

  std::size_t Size = Body.size() + Rest;
  if (IsWhole && !IsText) {
    std::size_t Offset = BaseSerDes::MessageOffset + Skeleton.size() +
                         NumElementBytes + 1 +
                         CodedOutputStream::VarintSize64(Size) + Body.size();
    appendPadding(Skeleton, Tensor, Offset);
  }
  appendLength(Skeleton, Number, Size);
  Skeleton += Body;
  if (IsText)
    return addStrings(Tensor, Index);
  insert(Index, 0, Tensor.NumBytes);
}

void GenericWriter::addStrings(const TensorView &Tensor, std::size_t Index) {
  std::size_t Offset = 0;
  auto Add = [&](std::size_t Length) {
    appendLength(Skeleton, GenericFields::Strings, Length);
    insert(Index, Offset, Length);
    Offset += Length;
  };
  if (!Tensor.isStringList())
    return Add(Tensor.NumBytes);
  for (std::uint64_t Length : Tensor.Lengths)
    Add(Length);
}

void GenericWriter::insert(std::size_t Feature, std::size_t Offset,
                           std::size_t NumBytes) {
  if (NumBytes == 0)
    return;
  Insertions.push_back({Skeleton.size(), Feature, Offset, NumBytes});
  NumElementBytes += NumBytes;
}

Expected<std::size_t> GenericWriter::prepare(Span<const TensorView> Features) {
  Expected<bool> IsNew = Last.update(Features);
  if (!IsNew) {
    IsMade = false;
    return IsNew.takeError();
  }
  if (*IsNew || !IsMade) {
    Skeleton.clear();
    Insertions.clear();
    NumElementBytes = 0;
    for (std::size_t I = 0; I < Features.size(); ++I)
      addTensor(Features, I);
    IsMade = true;
  }
  for (const TensorView &Feature : Features)
    if (Error E = serdes::checkElements(Feature, ErrorCode::InvalidArgument))
      return E;
  return Skeleton.size() + NumElementBytes;
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

template <typename F>
void GenericWriter::forEachPart(Span<const TensorView> Features, F Put) const {
  std::size_t Done = 0;
  for (const Insertion &I : Insertions) {
    Put(Skeleton.data() + Done, I.Before - Done);
    Done = I.Before;
    Put(static_cast<const char *>(Features[I.Feature].Data) + I.Offset,
        I.NumBytes);
  }
  Put(Skeleton.data() + Done, Skeleton.size() - Done);
}

std::uint8_t *GenericWriter::write(Span<const TensorView> Features,
                                   std::uint8_t *Out) const {
  forEachPart(Features, [&](const char *Part, std::size_t NumBytes) {
    std::memcpy(Out, Part, NumBytes);
    Out += NumBytes;
  });
  return Out;
}

Span<const Span<const std::byte>>
GenericWriter::pieces(Span<const TensorView> Features) {
  // The smallest average size in bytes for which sending pieces is faster than
  // copying. Copying this number of bytes takes as long as one more piece in a
  // system call.
  constexpr std::size_t WorthAPiece = 2048;
  if (NumElementBytes < WorthAPiece * (2 * Insertions.size() + 1))
    return {};
  Pieces.clear();
  forEachPart(Features, [&](const char *Part, std::size_t NumBytes) {
    if (NumBytes != 0)
      Pieces.emplace_back(reinterpret_cast<const std::byte *>(Part), NumBytes);
  });
  return Pieces;
}

} // namespace MLBridge::protobuf
