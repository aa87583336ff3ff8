//===- MessageWriter.cpp - Writes tensors to user-defined messages --------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/MessageWriter.h"

#include "MLCompilerBridge/Advice.h"

#include <cstring>

namespace MLBridge::protobuf {

using serdes::featureError;
using serdes::quoted;

//===----------------------------------------------------------------------===//
// Pairing fields with features
//===----------------------------------------------------------------------===//

namespace {
/// The kind of an element type. A field accepts features of its own kind.
enum class Kind : std::uint8_t { Integer, Floating, Bool, Text };
} // namespace

static Kind kindOf(ElementType Type) {
  switch (Type) {
  case ElementType::Float:
  case ElementType::Double:
    return Kind::Floating;
  case ElementType::Bool:
    return Kind::Bool;
  case ElementType::String:
    return Kind::Text;
  default:
    return Kind::Integer;
  }
}

static bool takes(const MessageType::Field &Field, const TensorView &Feature) {
  if (Field.isBytes())
    return Feature.Type == ElementType::UInt8 && Feature.Dims.rank() == 1;
  return kindOf(Field.elementType()) == kindOf(Feature.Type) &&
         Feature.Dims.rank() == (Field.IsRepeated ? 1 : 0);
}

Error MessageWriter::mismatch(const MessageType::Field &Field,
                              const TensorView &Feature,
                              const std::string &Found) const {
  return featureError(ErrorCode::SchemaMismatch, Feature.Name,
                      "field " + quoted(Field.Name) + " of message " +
                          Type->name() + " is " + Field.typeStr() + ", found " +
                          Found);
}

/// Checks that every field has a feature. Returns success for a reply that is
/// not advice, because it needs no features.
Error MessageWriter::checkComplete(Span<const TensorView> Features) const {
  for (const TensorView &Feature : Features)
    if (Feature.Name == ReplyNames::Error ||
        Feature.Name == ReplyNames::Deferred)
      return Error::success();
  std::vector<bool> HasFeature(Type->fields().size());
  for (const Pair &P : Pairs)
    HasFeature[P.Field] = true;
  for (std::size_t I = 0; I < HasFeature.size(); ++I) {
    const MessageType::Field &Field = Type->fields()[I];
    if (HasFeature[I] || Field.IsOptional)
      continue;
    std::string Names;
    for (const TensorView &Feature : Features)
      Names += (Names.empty() ? "" : ", ") + quoted(Feature.Name);
    return {ErrorCode::SchemaMismatch,
            "field " + quoted(Field.Name) + " of message " + Type->name() +
                " has no feature of this name; the features are: " +
                (Names.empty() ? "none" : Names) +
                "; set it, or declare the field optional"};
  }
  return Error::success();
}

Error MessageWriter::pair(Span<const TensorView> Features) {
  Pairs.clear();
  ReservedFeatures.clear();
  for (std::size_t I = 0; I < Features.size(); ++I) {
    const TensorView &Feature = Features[I];
    std::size_t Found = Type->find(Feature.Name);
    if (Found == Type->fields().size()) {
      if (!Feature.Name.starts_with('_'))
        return featureError(ErrorCode::SchemaMismatch, Feature.Name,
                            "message " + Type->name() +
                                " has no field of this name; its fields are: " +
                                Type->fieldNames());
      ReservedFeatures.push_back(I);
      continue;
    }
    const MessageType::Field &Field = Type->fields()[Found];
    if (!takes(Field, Feature))
      return mismatch(Field, Feature, Feature.typeStr());
    Pairs.push_back({Found, I});
  }
  return checkComplete(Features);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Converts the elements of \p Feature to the field's type. Stores the results
/// in Converted.
Error MessageWriter::convert(const TensorView &Feature, Pair &P) {
  const MessageType::Field &Field = Type->fields()[P.Field];
  const ElementType To = Field.elementType();
  const std::size_t NumBytes = Feature.numElements() * elementSize(To);
  P.Offset = Converted.align(serdes::ElementStore::Alignment);
  void *Out = Converted.extend(NumBytes);
  if (Error E = detail::convertElements(Feature, To, Out))
    return mismatch(Field, Feature,
                    Feature.typeStr() + " with a value that does not fit");
  P.IsConverted = true;
  return Error::success();
}

const void *MessageWriter::elementsOf(const Pair &P,
                                      Span<const TensorView> Features) const {
  return P.IsConverted ? Converted.at(P.Offset) : Features[P.Feature].Data;
}

static std::size_t lengthSize(std::size_t Length) {
  return CodedOutputStream::VarintSize64(Length);
}

static std::size_t tagSize(const MessageType::Field &Field) {
  return Format::TagSize(Field.Number, Field.Type);
}

/// Returns the size of the field in bytes, including its tags.
std::size_t MessageWriter::sizeOf(const MessageType::Field &Field,
                                  const TensorView &Feature, Pair &P,
                                  Span<const TensorView> Features) const {
  const std::size_t Tag = tagSize(Field), Count = Feature.numElements();
  if (Feature.isStringList()) {
    std::size_t Size = 0;
    for (std::uint64_t Length : Feature.Lengths)
      Size += Tag + lengthSize(Length) + Length;
    return Size;
  }
  if (Feature.Type == ElementType::String || Field.isBytes())
    return Tag + lengthSize(Feature.NumBytes) + Feature.NumBytes;
  P.Size = numbersSize(Field.Type, elementsOf(P, Features), Count);
  if (!Field.IsPacked)
    return Tag * Count + P.Size;
  return Count == 0 ? 0 : Tag + lengthSize(P.Size) + P.Size;
}

Expected<std::size_t> MessageWriter::prepare(Span<const TensorView> Features) {
  Expected<bool> IsNew = Last.update(Features);
  if (!IsNew) {
    IsPaired = false;
    return IsNew.takeError();
  }
  if (*IsNew || !IsPaired) {
    IsPaired = false;
    if (Error E = pair(Features))
      return E;
    IsPaired = true;
  }
  for (const TensorView &Feature : Features)
    if (Error E = serdes::checkElements(Feature, ErrorCode::InvalidArgument))
      return E;
  Converted.clear();
  std::size_t Size = 0;
  for (Pair &P : Pairs) {
    const TensorView &Feature = Features[P.Feature];
    const MessageType::Field &Field = Type->fields()[P.Field];
    P.IsConverted = false;
    if (Feature.Type != Field.elementType())
      if (Error E = convert(Feature, P))
        return E;
    Size += sizeOf(Field, Feature, P, Features);
  }
  Reserved.clear();
  for (std::size_t I : ReservedFeatures)
    Reserved.push_back(Features[I]);
  Expected<std::size_t> ReservedSize = ReservedWriter.prepare(Reserved);
  if (!ReservedSize)
    return ReservedSize;
  return Size + *ReservedSize;
}

static std::uint8_t *writeTag(const MessageType::Field &Field,
                              Format::WireType Type, std::uint8_t *Out) {
  return CodedOutputStream::WriteTagToArray(Format::MakeTag(Field.Number, Type),
                                            Out);
}

static std::uint8_t *writeBytes(const MessageType::Field &Field,
                                const void *Bytes, std::size_t NumBytes,
                                std::uint8_t *Out) {
  Out = writeTag(Field, Format::WIRETYPE_LENGTH_DELIMITED, Out);
  Out = CodedOutputStream::WriteVarint64ToArray(NumBytes, Out);
  if (NumBytes != 0)
    std::memcpy(Out, Bytes, NumBytes);
  return Out + NumBytes;
}

static std::uint8_t *writeStrings(const MessageType::Field &Field,
                                  const TensorView &Feature,
                                  std::uint8_t *Out) {
  const char *Text = Feature.text().data();
  for (std::uint64_t Length : Feature.Lengths) {
    Out = writeBytes(Field, Text, Length, Out);
    Text += Length;
  }
  return Out;
}

std::uint8_t *MessageWriter::write(Span<const TensorView> Features,
                                   std::uint8_t *Out) const {
  for (const Pair &P : Pairs) {
    const TensorView &Feature = Features[P.Feature];
    const MessageType::Field &Field = Type->fields()[P.Field];
    const std::size_t Count = Feature.numElements();
    const void *Elements = elementsOf(P, Features);
    if (Feature.isStringList()) {
      Out = writeStrings(Field, Feature, Out);
    } else if (Feature.Type == ElementType::String || Field.isBytes()) {
      Out = writeBytes(Field, Feature.Data, Feature.NumBytes, Out);
    } else if (Field.IsPacked) {
      if (Count == 0)
        continue;
      Out = writeTag(Field, Format::WIRETYPE_LENGTH_DELIMITED, Out);
      Out = CodedOutputStream::WriteVarint64ToArray(P.Size, Out);
      Out = writeNumbers(Field.Type, Elements, Count, Out);
    } else {
      const std::size_t Size = elementSize(Field.elementType());
      for (std::size_t I = 0; I < Count; ++I) {
        Out = writeTag(Field, Format::WireTypeForFieldType(Field.Type), Out);
        Out = writeNumbers(Field.Type,
                           static_cast<const std::byte *>(Elements) + I * Size,
                           1, Out);
      }
    }
  }
  return ReservedWriter.write(Reserved, Out);
}

} // namespace MLBridge::protobuf
