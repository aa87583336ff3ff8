//===- NestedWriter.cpp - Writes the messages in a message ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/NestedWriter.h"

#include "MLCompilerBridge/Advice.h"
#include "SerDes/Schema.h"

#include <algorithm>
#include <cstring>

namespace MLBridge::protobuf {

using serdes::featureError;
using serdes::quoted;

static Error schemaMismatch(std::string_view Feature, const std::string &What) {
  return featureError(ErrorCode::SchemaMismatch, Feature, What);
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

NestedWriter::NestedWriter(std::shared_ptr<const NestedType> Type)
    : Type(std::move(Type)), Columns(this->Type->columns().size()),
      Used(this->Type->nodes().size()), Rows(this->Type->levels().size()),
      FirstRows(Rows.size()), FirstElements(this->Type->leaves().size()),
      Texts(this->Type->leaves().size()) {}

void NestedWriter::clear() { std::ranges::fill(Columns, Given()); }

Expected<bool> NestedWriter::add(const TensorView &Feature, std::size_t Index) {
  const std::size_t Found = Type->find(Feature.Name);
  if (Found == None)
    return false;
  if (Error E = checkForm(Type->columns()[Found], Feature))
    return E;
  Columns[Found].Index = Index;
  return true;
}

Error NestedWriter::mismatch(const Column &Column, const std::string &Wanted,
                             const std::string &Found) const {
  return schemaMismatch(Column.Name, "field " + quoted(Column.Name) +
                                         " of message " + Type->root().Type +
                                         " is " + Wanted + ", found " + Found);
}

/// Checks the type and the rank of \p Feature.
Error NestedWriter::checkForm(const Column &Column,
                              const TensorView &Feature) const {
  const std::size_t Rank = Feature.Dims.rank();
  const bool HasRows = Column.Level != 0;
  const std::size_t RankOfRows = HasRows ? 1 : 0;
  const std::string Rank1 = HasRows ? ", one for each message, of rank 1" : "";
  if (Column.Has == Column::Content::Lengths) {
    if (Feature.Type <= ElementType::UInt64 && Rank == RankOfRows)
      return Error::success();
    return mismatch(Column, "a number of elements" + Rank1, Feature.typeStr());
  }
  if (Column.Has == Column::Content::Presence) {
    if (Feature.Type == ElementType::Bool && Rank == RankOfRows)
      return Error::success();
    return mismatch(Column, "a bool" + Rank1, Feature.typeStr());
  }
  const NestedType::Leaf &Leaf = Type->leaves()[Column.Leaf];
  const std::string TypeName = Leaf.Field.typeStr();
  if (!Leaf.isList())
    return Leaf.Field.accepts(Feature.Type) && Rank == RankOfRows
               ? Error::success()
               : mismatch(Column, TypeName + Rank1, Feature.typeStr());
  if (Leaf.Field.accepts(Feature.Type) && (Rank == 1 || (HasRows && Rank == 2)))
    return Error::success();
  return mismatch(Column,
                  HasRows ? TypeName + " in each message: of rank 1 with " +
                                quoted(Column.Name + "[]") + ", or of rank 2"
                          : TypeName,
                  Feature.typeStr());
}

const std::byte *NestedWriter::elements(std::size_t Index) const {
  const Given &Column = Columns[Index];
  return Column.IsConverted
             ? Converted.at(Column.Offset)
             : static_cast<const std::byte *>(Column.Feature.Data);
}

bool NestedWriter::isTrue(std::size_t Index, std::size_t Row) const {
  return elements(Index)[Row] != std::byte{0};
}

bool NestedWriter::isTrueAnywhere(std::size_t Index) const {
  return std::ranges::any_of(Columns[Index].Feature.bytes(),
                             [](std::byte B) { return B != std::byte{0}; });
}

std::int64_t NestedWriter::length(std::size_t Index, std::size_t Row) const {
  std::int64_t Length = 0;
  std::memcpy(&Length, elements(Index) + Row * sizeof(Length), sizeof(Length));
  return Length;
}

/// Converts the elements of all features whose type differs from the type of
/// their column.
Error NestedWriter::convertAll() {
  using Content = NestedType::Column::Content;
  MessageField LengthField;
  LengthField.Type = Format::TYPE_INT64;
  Converted.clear();
  for (std::size_t I = 0; I < Columns.size(); ++I) {
    Given &Column = Columns[I];
    if (Column.Index == None)
      continue;
    Column.IsConverted = false;
    const NestedType::Column &Known = Type->columns()[I];
    const bool IsLengths = Known.Has == Content::Lengths;
    if (Known.Has == Content::Presence)
      continue;
    const MessageField &To =
        IsLengths ? LengthField : Type->leaves()[Known.Leaf].Field;
    const TensorView &Feature = Column.Feature;
    if (Feature.Type == To.elementType())
      continue;
    Column.Offset = Converted.align(serdes::ElementStore::Alignment);
    void *Out =
        Converted.extend(Feature.numElements() * elementSize(To.elementType()));
    if (std::string Found = To.convert(Feature, Out); !Found.empty())
      return mismatch(Known, IsLengths ? "a number of elements" : To.typeStr(),
                      Found);
    Column.IsConverted = true;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Completeness
//===----------------------------------------------------------------------===//

/// Returns true if a feature is in \p Node.
bool NestedWriter::isUsed(const NestedType::Node &Node) const {
  for (std::size_t I = Node.FirstColumn; I < Node.EndColumn; ++I)
    if (I != Node.Presence && has(I))
      return true;
  return has(Node.Presence) && isTrueAnywhere(Node.Presence);
}

Error NestedWriter::checkLeaf(const NestedType::Leaf &Leaf) const {
  auto Missing = [&](std::size_t Index) {
    const std::string &Name = Type->columns()[Index].Name;
    return schemaMismatch(Name, "expected this feature for message " +
                                    Type->root().Type + ", found none");
  };
  if (!has(Leaf.Values)) {
    const bool IsAbsent =
        Leaf.Field.IsOptional &&
        !(has(Leaf.Presence) && isTrueAnywhere(Leaf.Presence));
    return IsAbsent ? Error::success() : Missing(Leaf.Values);
  }
  if (Leaf.Lengths == None)
    return Error::success();
  if (Columns[Leaf.Values].Feature.Dims.rank() == 1)
    return has(Leaf.Lengths) ? Error::success() : Missing(Leaf.Lengths);
  if (!has(Leaf.Lengths))
    return Error::success();
  return schemaMismatch(Type->columns()[Leaf.Lengths].Name,
                        "expected no lengths, because " +
                            quoted(Leaf.Field.Name) +
                            " has rank 2; found lengths");
}

/// Checks that all fields in \p Node have features.
Error NestedWriter::checkFields(const NestedType::Node &Node) const {
  for (const NestedType::Entry &Entry : Node.Fields) {
    if (Entry.Index == None)
      continue;
    if (!Entry.IsMessage) {
      if (Error E = checkLeaf(Type->leaves()[Entry.Index]))
        return E;
      continue;
    }
    const NestedType::Node &Child = Type->nodes()[Entry.Index];
    if (Child.IsOptional && !isUsed(Child))
      continue;
    if (Child.Count != None && !has(Child.Count))
      return schemaMismatch(Type->columns()[Child.Count].Name,
                            "expected this feature for message " +
                                Type->root().Type + ", found none");
    if (Error E = checkFields(Child))
      return E;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Returns the number of rows of a column. Returns None if the number follows
/// from the lengths.
std::size_t NestedWriter::numRows(std::size_t Index) const {
  const Column &Column = Type->columns()[Index];
  const TensorView &Feature = Columns[Index].Feature;
  if (Column.Has != Column::Content::Values ||
      !Type->leaves()[Column.Leaf].isList())
    return Feature.numElements();
  return Feature.Dims.rank() == 2 ? static_cast<std::size_t>(Feature.Dims[0])
                                  : None;
}

/// Sets \p Offsets to the sums of the lengths in the column \p Index.
Error NestedWriter::sumLengths(std::size_t Index,
                               std::vector<std::size_t> &Offsets) const {
  const std::size_t Count = Columns[Index].Feature.numElements();
  Offsets.clear();
  Offsets.reserve(Count + 1);
  Offsets.push_back(0);
  for (std::size_t I = 0; I < Count; ++I) {
    const std::int64_t Length = length(Index, I);
    if (Length < 0 ||
        static_cast<std::uint64_t>(Length) > MaxMessage - Offsets.back())
      return schemaMismatch(Type->columns()[Index].Name,
                            "expected lengths from 0 to 2^31 in all, found " +
                                std::to_string(Length));
    Offsets.push_back(Offsets.back() + static_cast<std::size_t>(Length));
  }
  return Error::success();
}

/// Determines the number of rows of a level. All columns must have this number
/// of rows.
Error NestedWriter::countRows(std::size_t Index) {
  const NestedType::Level &Level = Type->levels()[Index];
  const NestedType::Node &Node = Type->nodes()[Level.Node];
  std::vector<std::size_t> &First = FirstRows[Index];
  const std::size_t NumParents = Rows[Level.Parent];
  std::size_t Count = None, From = None;
  if (has(Node.Count)) {
    if (Error E = sumLengths(Node.Count, First))
      return E;
    Count = First.back();
    From = Node.Count;
  } else if (Level.Parent != 0) {
    // The messages that enclose the node are absent, as checkFields() has
    // checked.
    Count = 0;
  }
  for (std::size_t I = Node.FirstColumn; I < Node.EndColumn; ++I) {
    if (I == Node.Count || !has(I) || Type->columns()[I].Level != Index)
      continue;
    const std::size_t Found = numRows(I);
    if (Found == None || Found == Count)
      continue;
    if (Count != None)
      return schemaMismatch(
          Type->columns()[I].Name,
          "expected " + std::to_string(Count) + " messages " +
              quoted(Node.Path) +
              (From == None ? ""
                            : " as in " + quoted(Type->columns()[From].Name)) +
              ", found " + std::to_string(Found));
    Count = Found;
    From = I;
  }
  Rows[Index] = Count == None ? 0 : Count;
  if (!has(Node.Count)) {
    First.assign(NumParents + 1, Rows[Index]);
    First.front() = 0;
  }
  return Error::success();
}

/// Determines the positions of list elements and strings.
Error NestedWriter::placeLists() {
  for (std::size_t I = 0; I < FirstElements.size(); ++I) {
    const NestedType::Leaf &Leaf = Type->leaves()[I];
    if (!has(Leaf.Values))
      continue;
    const TensorView &Feature = Columns[Leaf.Values].Feature;
    const std::string &Name = Leaf.Field.Name;
    if (has(Leaf.Lengths)) {
      if (Error E = sumLengths(Leaf.Lengths, FirstElements[I]))
        return E;
      if (FirstElements[I].back() != Feature.numElements())
        return schemaMismatch(
            Name, "expected " + std::to_string(FirstElements[I].back()) +
                      " elements, which is the sum of " + quoted(Name + "[]") +
                      ", found " + std::to_string(Feature.numElements()));
    }
    if (!Leaf.Field.isText())
      continue;
    std::vector<std::size_t> &At = Texts[I];
    At.assign(1, 0);
    At.reserve(Feature.numElements() + 1);
    if (!Feature.isStringList())
      At.push_back(Feature.NumBytes);
    for (std::uint64_t Length : Feature.Lengths)
      At.push_back(At.back() + Length);
  }
  return Error::success();
}

bool NestedWriter::isPresent(std::size_t Index, std::size_t Row) const {
  const NestedType::Node &Node = Type->nodes()[Index];
  if (!Node.IsOptional)
    return true;
  return has(Node.Presence) ? isTrue(Node.Presence, Row) : Used[Index] != 0;
}

bool NestedWriter::hasLeaf(const NestedType::Leaf &Leaf,
                           std::size_t Row) const {
  return has(Leaf.Values) &&
         (!has(Leaf.Presence) || isTrue(Leaf.Presence, Row));
}

Error NestedWriter::checkOneofs() const {
  for (const NestedType::Node &Node : Type->nodes()) {
    // MessageWriter checks the root.
    if (&Node == &Type->root())
      continue;
    for (const NestedType::Oneof &Oneof : Node.Oneofs)
      for (std::size_t Row = 0; Row < Rows[Node.Level]; ++Row) {
        std::size_t Count = 0;
        for (const NestedType::Entry &Member : Oneof.Members) {
          const bool IsSet = Member.IsMessage
                                 ? isPresent(Member.Index, Row)
                                 : hasLeaf(Type->leaves()[Member.Index], Row);
          if (!IsSet)
            continue;
          ++Count;
          if (Count > 1)
            return {ErrorCode::SchemaMismatch,
                    "oneof " + quoted(Oneof.Name) + " in " + quoted(Node.Path) +
                        " of message " + Type->root().Type +
                        " can have one field, found two in message " +
                        std::to_string(Row)};
        }
      }
  }
  return Error::success();
}

Error NestedWriter::checkKeys() {
  for (const NestedType::Node &Node : Type->nodes()) {
    if (!Node.IsMap)
      continue;
    const std::size_t Index = Node.Fields.front().Index;
    const std::size_t Values = Type->leaves()[Index].Values;
    if (!has(Values))
      continue;
    TensorView Keys = Columns[Values].Feature;
    Keys.Type = Type->leaves()[Index].Field.elementType();
    Keys.Data = elements(Values);
    const std::vector<std::size_t> &First = FirstRows[Node.Level];
    for (std::size_t I = 0; I + 1 < First.size(); ++I) {
      const char *Text = static_cast<const char *>(Keys.Data);
      if (Keys.Type == ElementType::String)
        Text += Texts[Index][First[I]];
      if (DuplicateKeys.find(Keys, Text, First[I], First[I + 1]))
        return schemaMismatch(Keys.Name, "a map has the same key twice");
    }
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

NestedWriter::Range NestedWriter::elementsOf(std::size_t Index,
                                             std::size_t Row) const {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const TensorView &Feature = Columns[Leaf.Values].Feature;
  if (Leaf.Level == 0)
    return {0, Feature.numElements()};
  if (!Leaf.isList())
    return {Row, Row + 1};
  if (has(Leaf.Lengths))
    return {FirstElements[Index][Row], FirstElements[Index][Row + 1]};
  const auto Length = static_cast<std::size_t>(Feature.Dims[1]);
  return {Row * Length, (Row + 1) * Length};
}

std::size_t NestedWriter::sizeOfLeaf(std::size_t Index, std::size_t Row) {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const MessageField &Field = Leaf.Field;
  const Range In = elementsOf(Index, Row);
  const std::size_t Tag = Format::TagSize(Field.Number, Field.Type);
  if (Field.isText()) {
    std::size_t Size = 0;
    for (std::size_t I = In.First; I < In.End; ++I) {
      const std::size_t Length = Texts[Index][I + 1] - Texts[Index][I];
      Size += Tag + lengthSize(Length) + Length;
    }
    return Size;
  }
  if (Field.isBytes())
    return Tag + lengthSize(In.size()) + In.size();
  const std::size_t Element = elementSize(Field.elementType());
  const std::size_t Size = numbersSize(
      Field.Type, elements(Leaf.Values) + In.First * Element, In.size());
  if (!Field.IsPacked)
    return Tag * In.size() + Size;
  Sizes.push_back(Size);
  return In.size() == 0 ? 0 : Tag + lengthSize(Size) + Size;
}

/// Returns the size of the fields of \p Node in the row \p Row in bytes.
std::size_t NestedWriter::sizeOfFields(const NestedType::Node &Node,
                                       std::size_t Row) {
  std::size_t Size = 0;
  auto AddMessage = [&](const NestedType::Node &Child, std::size_t ChildRow) {
    const std::size_t At = Sizes.size();
    Sizes.push_back(0);
    const std::size_t ChildSize = sizeOfFields(Child, ChildRow);
    Sizes[At] = ChildSize;
    Size += Format::TagSize(Child.Number, Format::TYPE_MESSAGE) +
            lengthSize(ChildSize) + ChildSize;
  };
  for (const NestedType::Entry &Entry : Node.Fields) {
    if (Entry.Index == None)
      continue;
    if (!Entry.IsMessage) {
      if (hasLeaf(Type->leaves()[Entry.Index], Row))
        Size += sizeOfLeaf(Entry.Index, Row);
      continue;
    }
    const NestedType::Node &Child = Type->nodes()[Entry.Index];
    if (Child.IsRepeated) {
      const std::vector<std::size_t> &First = FirstRows[Child.Level];
      for (std::size_t I = First[Row]; I < First[Row + 1]; ++I)
        AddMessage(Child, I);
    } else if (isPresent(Entry.Index, Row)) {
      AddMessage(Child, Row);
    }
  }
  return Size;
}

Expected<std::size_t> NestedWriter::prepare(Span<const TensorView> Features) {
  Sizes.clear();
  if (Type->empty())
    return std::size_t(0);
  for (Given &Column : Columns)
    if (Column.Index != None)
      Column.Feature = Features[Column.Index];
  if (Error E = convertAll())
    return E;
  if (Error E = checkFields(Type->root()))
    return E;
  for (std::size_t I = 0; I < Used.size(); ++I)
    Used[I] = isUsed(Type->nodes()[I]);
  Rows[0] = 1;
  for (std::size_t I = 1; I < Rows.size(); ++I)
    if (Error E = countRows(I))
      return E;
  if (Error E = placeLists())
    return E;
  if (Error E = checkOneofs())
    return E;
  if (Error E = checkKeys())
    return E;
  return sizeOfFields(Type->root(), 0);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::uint8_t *NestedWriter::writeLeaf(std::size_t Index, std::size_t Row,
                                      std::uint8_t *Out) {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const MessageField &Field = Leaf.Field;
  const Range In = elementsOf(Index, Row);
  const std::byte *Data = elements(Leaf.Values);
  if (Field.isText()) {
    const std::vector<std::size_t> &At = Texts[Index];
    for (std::size_t I = In.First; I < In.End; ++I)
      Out = writeBytes(Field.Number, Data + At[I], At[I + 1] - At[I], Out);
    return Out;
  }
  if (Field.isBytes())
    return writeBytes(Field.Number, Data + In.First, In.size(), Out);
  const std::size_t Element = elementSize(Field.elementType());
  if (Field.IsPacked) {
    const std::size_t Size = Sizes[NextSize++];
    if (In.size() == 0)
      return Out;
    Out = writeLength(Field.Number, Size, Out);
    return writeNumbers(Field.Type, Data + In.First * Element, In.size(), Out);
  }
  for (std::size_t I = In.First; I < In.End; ++I) {
    Out = writeTag(Field.Number, Format::WireTypeForFieldType(Field.Type), Out);
    Out = writeNumbers(Field.Type, Data + I * Element, 1, Out);
  }
  return Out;
}

std::uint8_t *NestedWriter::writeFields(const NestedType::Node &Node,
                                        std::size_t Row, std::uint8_t *Out) {
  auto WriteMessage = [&](const NestedType::Node &Child, std::size_t ChildRow) {
    Out = writeLength(Child.Number, Sizes[NextSize++], Out);
    Out = writeFields(Child, ChildRow, Out);
  };
  for (const NestedType::Entry &Entry : Node.Fields) {
    if (Entry.Index == None)
      continue;
    if (!Entry.IsMessage) {
      if (hasLeaf(Type->leaves()[Entry.Index], Row))
        Out = writeLeaf(Entry.Index, Row, Out);
      continue;
    }
    const NestedType::Node &Child = Type->nodes()[Entry.Index];
    if (Child.IsRepeated) {
      const std::vector<std::size_t> &First = FirstRows[Child.Level];
      for (std::size_t I = First[Row]; I < First[Row + 1]; ++I)
        WriteMessage(Child, I);
    } else if (isPresent(Entry.Index, Row)) {
      WriteMessage(Child, Row);
    }
  }
  return Out;
}

std::uint8_t *NestedWriter::write(std::uint8_t *Out) {
  if (Type->empty())
    return Out;
  NextSize = 0;
  return writeFields(Type->root(), 0, Out);
}

} // namespace MLBridge::protobuf
