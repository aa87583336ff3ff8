//===- MessageReader.cpp - Reads tensors from user-defined messages -------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/MessageReader.h"

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include <cstring>

namespace MLBridge::protobuf {

using serdes::checkElements;
using serdes::featureError;

MessageReader::MessageReader(std::shared_ptr<const MessageType> Type)
    : Type(std::move(Type)), Found(this->Type->fields().size()),
      Numbers(new std::uint64_t[Found.size()]()), Nested(this->Type->nested()) {
}

serdes::ElementStore &MessageReader::State::store() {
  if (!Elements)
    Elements = std::make_unique<serdes::ElementStore>();
  if (!IsStored)
    Elements->clear();
  IsStored = true;
  return *Elements;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Records one occurrence of the field with the index \p Index.
Error MessageReader::take(const WireField &Wire, std::size_t Index) {
  const MessageType::Field &Field = Type->fields()[Index];
  State &F = Found[Index];
  auto Broken = [&] {
    return featureError(ErrorCode::Malformed, Field.Name,
                        "expected " + Field.typeStr() + " in message " +
                            Type->name() + ", found something else");
  };
  const bool IsText = Field.Type == Format::TYPE_STRING;
  if (IsText || Field.isBytes()) {
    if (!Wire.hasBytes())
      return Broken();
    F.InPlace = Wire.Bytes;
    ++F.Count;
    if (!Field.IsRepeated)
      return Error::success();
    F.store().push(Wire.Bytes.data(), Wire.Bytes.size());
    F.store().pushLength(Wire.Bytes.size());
    return Error::success();
  }
  const std::size_t Size = elementSize(Field.elementType());
  if (!Field.IsRepeated) {
    // Overwrite earlier values. If a field occurs several times, Protobuf uses
    // the last value.
    F.Count = 1;
    Scratch.clear();
    if (Wire.hasBytes() || !readNumbers(Wire, Field.Type, Scratch))
      return Broken();
    std::memcpy(&Numbers[static_cast<std::ptrdiff_t>(Index)], Scratch.at(0),
                Size);
    return Error::success();
  }
  const bool IsFixed =
      Format::WireTypeForFieldType(Field.Type) != Format::WIRETYPE_VARINT;
  if (++F.Count == 1 && IsFixed && Wire.hasBytes()) {
    F.InPlace = Wire.Bytes;
    return Wire.Bytes.size() % Size == 0 ? Error::success() : Broken();
  }
  if (!F.InPlace.empty()) {
    F.store().push(F.InPlace.data(), F.InPlace.size());
    F.InPlace = {};
  }
  return readNumbers(Wire, Field.Type, F.store()) ? Error::success() : Broken();
}

/// Records one occurrence of any field, which begins at \p Position.
Error MessageReader::takeField(const WireField &Wire, std::size_t Position) {
  if (Wire.Number == MessageType::ReservedNumber && Wire.hasBytes())
    return Reserved.add(Wire.Bytes);
  const NestedType::Entry *Entry = Type->nested()->root().find(Wire.Number);
  if (!Entry)
    return unknownField(Wire.Number, Type->name());
  if (!Nested.oneofs().counts(Entry->Oneof, Position))
    return Error::success();
  return Entry->IsMessage ? Nested.take(Wire, Entry->Index)
                          : take(Wire, Type->find(Wire.Number));
}

Error MessageReader::addView(std::size_t Index) {
  static constexpr std::uint64_t Zero = 0;
  const MessageType::Field &Field = Type->fields()[Index];
  State &F = Found[Index];
  if (F.Count == 0 && Field.IsRequired)
    return featureError(ErrorCode::Malformed, Field.Name,
                        "message " + Type->name() +
                            " lacks this required field");
  if (F.Count == 0 && Field.IsOptional)
    return Error::success();
  TensorView View;
  View.Name = Field.Name;
  View.Type = Field.elementType();
  const std::size_t Size = elementSize(View.Type);
  const bool IsText = View.Type == ElementType::String;
  const bool IsAligned =
      reinterpret_cast<std::uintptr_t>(F.InPlace.data()) % Size == 0;
  if (!IsAligned)
    F.store().push(F.InPlace.data(), F.InPlace.size());
  if (!Field.IsRepeated && !IsText && !Field.isBytes()) {
    // A missing field has the value 0.
    View.Data =
        F.Count == 0 ? &Zero : &Numbers[static_cast<std::ptrdiff_t>(Index)];
    View.NumBytes = Size;
  } else if (F.IsStored) {
    View.Data = F.Elements->at(0);
    View.NumBytes = F.Elements->size();
  } else {
    View.Data =
        F.InPlace.empty() ? static_cast<const void *>(&Zero) : F.InPlace.data();
    View.NumBytes = F.InPlace.size();
  }
  if (IsText && Field.IsRepeated && F.IsStored)
    View.Lengths = F.Elements->lengths(0, F.Count);
  if (IsText && Field.IsRepeated)
    View.Dims = {static_cast<std::int64_t>(F.Count)};
  else if (Field.IsRepeated || Field.isBytes())
    View.Dims = {static_cast<std::int64_t>(View.NumBytes / Size)};
  Views.push_back(View);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

Error MessageReader::readMessage(std::string_view Message) {
  for (State &F : Found) {
    F.IsStored = false;
    F.InPlace = {};
    F.Count = 0;
  }
  Reserved.clear();
  Nested.clear();
  Nested.oneofs().begin(Message, Type->nested()->root());
  FieldReader Reader(Message);
  WireField Field;
  FieldReader::Step Step;
  std::size_t Position = 0;
  while ((Step = Reader.next(Field)) == FieldReader::Step::Field) {
    if (Error E = takeField(Field, Position))
      return E;
    Position = Reader.position();
  }
  if (Step == FieldReader::Step::Broken)
    return {ErrorCode::Malformed,
            "message " + Type->name() + ": " + Reader.problem()};
  if (Error E = addViews())
    return E;
  if (Error E = Tracker.update(Views, Message))
    return E;
  for (const TensorView &View : Views)
    if (Error E = checkElements(View, ErrorCode::Malformed))
      return E;
  return Error::success();
}

Error MessageReader::addViews() {
  Views.clear();
  for (const TensorView &Tensor : Reserved.views()) {
    if (!Tensor.Name.starts_with('_'))
      return featureError(ErrorCode::Malformed, Tensor.Name,
                          "expected a name with an underscore at its start "
                          "among the protocol's own tensors of message " +
                              Type->name());
    Views.push_back(Tensor);
    // Ignore the fields, because an error or a deferral contains no advice.
    if (Tensor.Name == ReplyNames::Error || Tensor.Name == ReplyNames::Deferred)
      return Error::success();
  }
  for (std::size_t I = 0; I < Found.size(); ++I)
    if (Error E = addView(I))
      return E;
  return Nested.finish(Views);
}

Expected<Span<const TensorView>> MessageReader::read(std::string_view Message) {
  if (Error E = readMessage(Message)) {
    Tracker.reset();
    return E;
  }
  return Span<const TensorView>(Views);
}

std::shared_ptr<const void> MessageReader::memory() const {
  auto All = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  All->push_back(Numbers);
  for (const State &F : Found)
    if (F.Elements)
      All->push_back(F.Elements->memory());
  Nested.addMemory(*All);
  All->push_back(Reserved.memory());
  return All;
}

} // namespace MLBridge::protobuf
