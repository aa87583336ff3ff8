//===- GenericReader.cpp - Reads tensors from generic messages ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/GenericReader.h"

#include "Core/TensorForm.h"
#include "MLCompilerBridge/Advice.h"
#include "Protobuf/GenericWriter.h"

namespace MLBridge::protobuf {

using serdes::checkElements;
using serdes::featureError;

static Error malformed(const std::string &What) {
  return {ErrorCode::Malformed, "Protobuf message: " + What};
}

//===----------------------------------------------------------------------===//
// One tensor's fields
//===----------------------------------------------------------------------===//

static Error addExtents(const WireField &Field, Shape &Dims,
                        std::string_view Name) {
  auto Push = [&](std::uint64_t Extent) {
    if (Dims.push(static_cast<std::int64_t>(Extent)))
      return Error::success();
    return featureError(ErrorCode::Unsupported, Name,
                        "more than " + std::to_string(Shape::MaxRank) +
                            " extents");
  };
  if (Field.Type == Format::WIRETYPE_VARINT)
    return Push(Field.Bits);
  CodedInputStream Packed(
      reinterpret_cast<const std::uint8_t *>(Field.Bytes.data()),
      static_cast<int>(Field.Bytes.size()));
  while (Packed.CurrentPosition() != static_cast<int>(Field.Bytes.size())) {
    std::uint64_t Extent = 0;
    if (!Packed.ReadVarint64(&Extent))
      return featureError(ErrorCode::Malformed, Name, "its shape is invalid");
    if (Error E = Push(Extent))
      return E;
  }
  return Error::success();
}

Expected<GenericReader::Parts>
GenericReader::readParts(std::string_view Bytes) {
  using Fields = GenericFields;
  Parts P;
  FieldReader Reader(Bytes);
  WireField Field;
  FieldReader::Step Step;
  while ((Step = Reader.next(Field)) == FieldReader::Step::Field) {
    const bool HasBytes = Field.hasBytes();
    switch (Field.Number) {
    case Fields::Name:
      if (HasBytes)
        P.Name = Field.Bytes;
      break;
    case Fields::Type:
      if (Field.Type == Format::WIRETYPE_VARINT)
        P.Type = Field.Bits;
      break;
    case Fields::Shape:
      if (!HasBytes && Field.Type != Format::WIRETYPE_VARINT)
        break;
      P.HasShape = true;
      if (Error E = addExtents(Field, P.Dims, P.Name))
        return E;
      break;
    case Fields::Data:
      if (!HasBytes)
        break;
      P.Data = Field.Bytes;
      break;
    case Fields::Strings:
      if (!HasBytes)
        break;
      ++P.NumStrings;
      P.String = Field.Bytes;
      break;
    case Fields::Ints:
    case Fields::UInts:
    case Fields::Floats:
    case Fields::Doubles:
    case Fields::Bools:
      if (P.Typed != 0 && P.Typed != Field.Number)
        return featureError(ErrorCode::Malformed, P.Name,
                            "its elements are in two fields");
      P.Typed = Field.Number;
      break;
    default:
      break;
    }
  }
  if (Step == FieldReader::Step::Broken)
    return featureError(ErrorCode::Malformed, P.Name, Reader.problem());
  if (P.hasData() + P.hasStrings() + (P.Typed != 0) > 1)
    return featureError(ErrorCode::Malformed, P.Name,
                        "its elements are in two fields");
  return P;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Sets the shape of \p View to the transmitted shape, which must fit \p Count
/// elements. If no shape was transmitted, the shape becomes a scalar or a
/// vector of \p Count elements.
static Error applyShape(const Shape &Sent, bool HasShape, std::size_t Count,
                        TensorView &View) {
  if (HasShape)
    View.Dims = Sent;
  else if (Count != 1)
    View.Dims = {static_cast<std::int64_t>(Count)};
  std::string Why = detail::misfit(View.Dims, Count);
  return Why.empty() ? Error::success()
                     : featureError(ErrorCode::Malformed, View.Name, Why);
}

/// Reads strings. A single string is read in place. The strings of a list are
/// copied, because they are not adjacent in the message.
Error GenericReader::takeStrings(std::string_view Bytes, const Parts &P,
                                 Slot &Out) {
  if (Error E = applyShape(P.Dims, P.HasShape, P.NumStrings, Out.View))
    return E;
  if (Out.View.Dims.rank() > 1)
    return featureError(ErrorCode::Malformed, P.Name,
                        "a list of strings has rank 1, found shape " +
                            P.Dims.str());
  if (!Out.View.isStringList()) {
    Out.View.Data = P.String.data();
    Out.View.NumBytes = P.String.size();
    return Error::success();
  }
  Out.IsStored = true;
  Out.Offset = Store.size();
  Out.FirstLength = Store.numLengths();
  FieldReader Reader(Bytes);
  WireField Field;
  while (Reader.next(Field) == FieldReader::Step::Field)
    if (Field.Number == GenericFields::Strings && Field.hasBytes()) {
      Store.push(Field.Bytes.data(), Field.Bytes.size());
      Store.pushLength(Field.Bytes.size());
    }
  Out.View.NumBytes = Store.size() - Out.Offset;
  Out.NumLengths = P.NumStrings;
  return Error::success();
}

Error GenericReader::takeData(const Parts &P, Slot &Out) {
  const std::size_t Size = elementSize(Out.View.Type);
  if (P.Data.size() % Size != 0)
    return featureError(ErrorCode::Malformed, P.Name,
                        std::to_string(P.Data.size()) +
                            " bytes are not a whole number of " +
                            std::string(elementTypeName(Out.View.Type)));
  if (Error E = applyShape(P.Dims, P.HasShape, P.Data.size() / Size, Out.View))
    return E;
  Out.View.NumBytes = P.Data.size();
  Out.View.Data = P.Data.data();
  bool IsAligned = reinterpret_cast<std::uintptr_t>(P.Data.data()) % Size == 0;
  if (P.Data.empty() || !IsAligned) {
    Out.IsStored = true;
    Out.Offset = Store.align(serdes::ElementStore::Alignment);
    Store.push(P.Data.data(), P.Data.size());
  }
  return Error::success();
}

/// Returns the element type of the typed field \p Number.
static Format::FieldType typeOfField(int Number) {
  switch (Number) {
  case GenericFields::UInts:
    return Format::TYPE_UINT64;
  case GenericFields::Floats:
    return Format::TYPE_FLOAT;
  case GenericFields::Doubles:
    return Format::TYPE_DOUBLE;
  case GenericFields::Bools:
    return Format::TYPE_BOOL;
  default:
    return Format::TYPE_INT64;
  }
}

static bool isInteger(ElementType Type) { return Type <= ElementType::UInt64; }

Error GenericReader::takeTyped(std::string_view Bytes, const Parts &P,
                               Slot &Out) {
  const Format::FieldType Encoding = typeOfField(P.Typed);
  const ElementType From = elementTypeOf(Encoding), To = Out.View.Type;
  if (From != To && !(isInteger(From) && isInteger(To)))
    return featureError(ErrorCode::Malformed, P.Name,
                        "its type is " + std::string(elementTypeName(To)) +
                            ", its elements are " +
                            std::string(elementTypeName(From)));
  serdes::ElementStore &Into = From == To ? Store : Scratch;
  if (From != To)
    Scratch.clear();
  std::size_t Start = Into.align(serdes::ElementStore::Alignment);
  FieldReader Reader(Bytes);
  WireField Field;
  while (Reader.next(Field) == FieldReader::Step::Field)
    if (Field.Number == P.Typed && !readNumbers(Field, Encoding, Into))
      return featureError(ErrorCode::Malformed, P.Name,
                          "its elements are invalid");
  const std::size_t Count = (Into.size() - Start) / elementSize(From);
  if (Error E = applyShape(P.Dims, P.HasShape, Count, Out.View))
    return E;
  Out.IsStored = true;
  Out.Offset = Start;
  Out.View.NumBytes = Count * elementSize(To);
  if (From == To)
    return Error::success();

  TensorView Read = Out.View;
  Read.Type = From;
  Read.Data = Scratch.at(Start);
  Read.NumBytes = Count * elementSize(From);
  Converted.resize(Count);
  if (detail::convertElements(Read, To, Converted.data()))
    return featureError(ErrorCode::Malformed, P.Name,
                        "an element does not fit " +
                            std::string(elementTypeName(To)));
  Out.Offset = Store.align(serdes::ElementStore::Alignment);
  Store.push(Converted.data(), Out.View.NumBytes);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

void GenericReader::clear() {
  Slots.clear();
  Store.clear();
}

Error GenericReader::add(std::string_view Bytes) {
  Expected<Parts> P = readParts(Bytes);
  if (!P)
    return P.takeError();
  Slot Out;
  Out.View.Name = P->Name;
  std::optional<ElementType> Type = P->hasStrings() ? ElementType::String
                                    : P->Typed != 0
                                        ? elementTypeOf(typeOfField(P->Typed))
                                        : std::optional<ElementType>();
  if (P->Type.value_or(0) != 0) {
    std::optional<ElementType> Sent = GenericFields::typeOf(*P->Type);
    if (!Sent)
      return featureError(ErrorCode::Malformed, P->Name,
                          "unknown type number " + std::to_string(*P->Type));
    bool IsText = *Sent == ElementType::String;
    if (IsText ? P->hasData() || P->Typed != 0 : P->hasStrings())
      return featureError(ErrorCode::Malformed, P->Name,
                          "its type is " + std::string(elementTypeName(*Sent)) +
                              (IsText ? ", its elements are not strings"
                                      : ", its elements are strings"));
    Type = Sent;
  }
  if (!Type)
    return featureError(ErrorCode::Malformed, P->Name, "it has no type");
  Out.View.Type = *Type;
  Error E = *Type == ElementType::String ? takeStrings(Bytes, *P, Out)
            : P->Typed != 0              ? takeTyped(Bytes, *P, Out)
                                         : takeData(*P, Out);
  if (!E)
    Slots.push_back(Out);
  return E;
}

Span<const TensorView> GenericReader::views() {
  Views.clear();
  for (const Slot &S : Slots) {
    TensorView View = S.View;
    if (S.IsStored)
      View.Data = Store.at(S.Offset);
    if (View.isStringList())
      View.Lengths = Store.lengths(S.FirstLength, S.NumLengths);
    Views.push_back(View);
  }
  return Views;
}

Error GenericReader::readMessage(std::string_view Message) {
  clear();
  FieldReader Reader(Message);
  WireField Field;
  FieldReader::Step Step;
  while ((Step = Reader.next(Field)) == FieldReader::Step::Field)
    if (Field.Number == GenericFields::Tensors && Field.hasBytes())
      if (Error E = add(Field.Bytes))
        return E;
  if (Step == FieldReader::Step::Broken)
    return malformed(Reader.problem());
  if (Error E = Tracker.update(views(), Message))
    return E;
  for (const TensorView &View : Views)
    if (Error E = checkElements(View, ErrorCode::Malformed))
      return E;
  return Error::success();
}

Expected<Span<const TensorView>> GenericReader::read(std::string_view Message) {
  if (Error E = readMessage(Message)) {
    Tracker.reset();
    return E;
  }
  return Span<const TensorView>(Views);
}

} // namespace MLBridge::protobuf
