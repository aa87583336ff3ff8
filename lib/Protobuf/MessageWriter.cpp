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

static bool accepts(const MessageType::Field &Field,
                    const TensorView &Feature) {
  return Field.accepts(Feature.Type) &&
         Feature.Dims.rank() == (Field.IsRepeated || Field.isBytes() ? 1 : 0);
}

/// Returns true if a message of \p Features has fields. A message has no fields
/// if it reports an error, if it defers, or if all its tensors are the
/// protocol's own, for example the command `reset` in training.
static bool hasFields(Span<const TensorView> Features) {
  bool HasOther = Features.empty();
  for (const TensorView &Feature : Features) {
    if (Feature.Name == ReplyNames::Error ||
        Feature.Name == ReplyNames::Deferred)
      return false;
    HasOther |= !Feature.Name.starts_with('_');
  }
  return HasOther;
}

Error MessageWriter::mismatch(const MessageType::Field &Field,
                              const TensorView &Feature,
                              const std::string &Found) const {
  return featureError(ErrorCode::SchemaMismatch, Feature.Name,
                      "field " + quoted(Field.Name) + " of message " +
                          Type->name() + " is " + Field.typeStr() + ", found " +
                          Found);
}

/// Checks that every field has a feature.
Error MessageWriter::checkComplete(Span<const TensorView> Features) const {
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
  Nested.clear();
  HasFields = hasFields(Features);
  for (std::size_t I = 0; I < Features.size(); ++I) {
    const TensorView &Feature = Features[I];
    std::size_t Found = Type->find(Feature.Name);
    if (Found == Type->fields().size()) {
      Expected<bool> IsNested = Nested.add(Feature, I);
      if (!IsNested)
        return IsNested.takeError();
      if (*IsNested)
        continue;
      if (!Feature.Name.starts_with('_'))
        return featureError(ErrorCode::SchemaMismatch, Feature.Name,
                            "message " + Type->name() +
                                " has no field of this name; its fields are: " +
                                Type->fieldNames());
      ReservedFeatures.push_back(I);
      continue;
    }
    const MessageType::Field &Field = Type->fields()[Found];
    if (!accepts(Field, Feature))
      return mismatch(Field, Feature, Feature.typeStr());
    Pairs.push_back({Found, I});
  }
  return HasFields ? checkComplete(Features) : Error::success();
}

/// Checks that no oneof of the message has two fields. NestedWriter checks the
/// messages in the message.
Error MessageWriter::checkOneofs() const {
  const NestedType::Node &Root = Type->nested()->root();
  for (std::size_t I = 0; I < Root.Oneofs.size(); ++I) {
    const std::string *Last = nullptr;
    Error Problem = Error::success();
    auto Add = [&](const std::string &Name) {
      if (Last)
        Problem = {ErrorCode::SchemaMismatch,
                   "oneof " + quoted(Root.Oneofs[I].Name) + " of message " +
                       Type->name() + " can have one field, found " +
                       quoted(*Last) + " and " + quoted(Name)};
      Last = &Name;
    };
    for (const Pair &P : Pairs)
      if (Type->fields()[P.Field].Oneof == I)
        Add(Type->fields()[P.Field].Name);
    for (const NestedType::Entry &Member : Root.Oneofs[I].Members)
      if (Member.IsMessage && Nested.hasNode(Member.Index))
        Add(Type->nested()->nodes()[Member.Index].Path);
    if (Problem)
      return Problem;
  }
  return Error::success();
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
  if (std::string Found = Field.convert(Feature, Out); !Found.empty())
    return mismatch(Field, Feature, Found);
  P.IsConverted = true;
  return Error::success();
}

const void *MessageWriter::elementsOf(const Pair &P,
                                      Span<const TensorView> Features) const {
  return P.IsConverted ? Converted.at(P.Offset) : Features[P.Feature].Data;
}

static std::size_t tagSize(const MessageType::Field &Field) {
  return Format::TagSize(Field.Number, Field.Type);
}

/// Returns the size of the field in bytes, including its tags.
std::size_t MessageWriter::sizeOf(const MessageType::Field &Field,
                                  const TensorView &Feature, Pair &P,
                                  Span<const TensorView> Features) const {
  const std::size_t Tag = tagSize(Field), Count = Feature.numElements();
  if (Field.isText() && Feature.isStringList()) {
    std::size_t Size = 0;
    for (std::uint64_t Length : Feature.Lengths)
      Size += Tag + lengthSize(Length) + Length;
    return Size;
  }
  if (Field.isText() || Field.isBytes())
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
  if (HasFields) {
    Expected<std::size_t> NestedSize = Nested.prepare(Features);
    if (!NestedSize)
      return NestedSize;
    Size += *NestedSize;
    if (Error E = checkOneofs())
      return E;
  }
  Reserved.clear();
  for (std::size_t I : ReservedFeatures)
    Reserved.push_back(Features[I]);
  Expected<std::size_t> ReservedSize = ReservedWriter.prepare(Reserved);
  if (!ReservedSize)
    return ReservedSize;
  return Size + *ReservedSize;
}

static std::uint8_t *writeStrings(const MessageType::Field &Field,
                                  const TensorView &Feature,
                                  std::uint8_t *Out) {
  const char *Text = Feature.text().data();
  for (std::uint64_t Length : Feature.Lengths) {
    Out = writeBytes(Field.Number, Text, Length, Out);
    Text += Length;
  }
  return Out;
}

std::uint8_t *MessageWriter::writePair(const Pair &P,
                                       Span<const TensorView> Features,
                                       std::uint8_t *Out) const {
  const TensorView &Feature = Features[P.Feature];
  const MessageType::Field &Field = Type->fields()[P.Field];
  const std::size_t Count = Feature.numElements();
  const void *Elements = elementsOf(P, Features);
  if (Field.isText() && Feature.isStringList())
    return writeStrings(Field, Feature, Out);
  if (Field.isText() || Field.isBytes())
    return writeBytes(Field.Number, Feature.Data, Feature.NumBytes, Out);
  if (Field.IsPacked) {
    if (Count == 0)
      return Out;
    Out = writeLength(Field.Number, P.Size, Out);
    return writeNumbers(Field.Type, Elements, Count, Out);
  }
  const std::size_t Size = elementSize(Field.elementType());
  for (std::size_t I = 0; I < Count; ++I) {
    Out = writeTag(Field.Number, Format::WireTypeForFieldType(Field.Type), Out);
    Out = writeNumbers(Field.Type,
                       static_cast<const std::byte *>(Elements) + I * Size, 1,
                       Out);
  }
  return Out;
}

std::uint8_t *MessageWriter::write(Span<const TensorView> Features,
                                   std::uint8_t *Out) {
  for (const Pair &P : Pairs)
    Out = writePair(P, Features, Out);
  if (HasFields)
    Out = Nested.write(Out);
  return ReservedWriter.write(Reserved, Out);
}

} // namespace MLBridge::protobuf
