//===- NestedReader.cpp - Reads the messages in a message -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/NestedReader.h"

#include "SerDes/Schema.h"

#include <algorithm>
#include <cstring>

namespace MLBridge::protobuf {

using serdes::featureError;

//===----------------------------------------------------------------------===//
// Oneofs
//===----------------------------------------------------------------------===//

void OneofScan::begin(std::string_view Message, const NestedType::Node &Type) {
  const std::size_t First = Winners.size();
  Starts.push_back(First);
  if (Type.Oneofs.empty())
    return;
  Winners.resize(First + Type.Oneofs.size());
  FieldReader Reader(Message);
  WireField Field;
  for (;;) {
    const std::size_t Position = Reader.position();
    // The caller reports broken messages, because it reads the fields again.
    if (Reader.next(Field) != FieldReader::Step::Field)
      return;
    const NestedType::Entry *Entry = Type.find(Field.Number);
    if (!Entry || Entry->Oneof == None)
      continue;
    Winner &Last = Winners[First + Entry->Oneof];
    if (Last.Number != Field.Number)
      Last = {Field.Number, Position};
  }
}

void OneofScan::end() {
  Winners.resize(Starts.back());
  Starts.pop_back();
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

NestedReader::NestedReader(std::shared_ptr<const NestedType> Type)
    : Type(std::move(Type)), Columns(this->Type->columns().size()),
      Leaves(this->Type->leaves().size()),
      NodeStates(this->Type->nodes().size()),
      Rows(this->Type->levels().size()) {}

void NestedReader::clear() {
  for (serdes::ElementStore &Column : Columns)
    Column.clear();
  std::ranges::fill(Leaves, LeafState());
  std::ranges::fill(NodeStates, NodeState());
  std::ranges::fill(Rows, std::size_t(0));
  NumBytes = 0;
  Oneofs.clear();
}

Error NestedReader::take(const WireField &Wire, std::size_t Index) {
  const NestedType::Node &Node = Type->nodes()[Index];
  if (!Wire.hasBytes())
    return featureError(ErrorCode::Malformed, Node.Path,
                        "expected a message " + Node.Type +
                            ", found something else");
  NodeState &State = NodeStates[Index];
  State.IsPresent = true;
  if (Error E = readFields(Node, Wire.Bytes))
    return E;
  if (!Node.IsRepeated)
    return Error::success();
  ++State.Count;
  if (Error E = endRow(Node.Level))
    return E;
  resetRow(Node.Level);
  return Error::success();
}

Error NestedReader::readFields(const NestedType::Node &Node,
                               std::string_view Message) {
  Oneofs.begin(Message, Node);
  FieldReader Reader(Message);
  WireField Field;
  for (;;) {
    const std::size_t Position = Reader.position();
    const FieldReader::Step Step = Reader.next(Field);
    if (Step == FieldReader::Step::End)
      break;
    if (Step == FieldReader::Step::Broken)
      return featureError(ErrorCode::Malformed, Node.Path,
                          "message " + Node.Type + ": " + Reader.problem());
    const NestedType::Entry *Entry = Node.find(Field.Number);
    if (!Entry)
      return unknownField(Field.Number, Node.Type);
    if (!Oneofs.counts(Entry->Oneof, Position))
      continue;
    if (Error E = Entry->IsMessage ? take(Field, Entry->Index)
                                   : takeLeaf(Field, Entry->Index))
      return E;
  }
  Oneofs.end();
  return Error::success();
}

Error NestedReader::takeLeaf(const WireField &Wire, std::size_t Index) {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const MessageField &Field = Leaf.Field;
  LeafState &State = Leaves[Index];
  State.IsPresent = true;
  bool IsRead = true;
  if (Field.isText() && Field.IsRepeated && Wire.hasBytes()) {
    Columns[Leaf.Values].push(Wire.Bytes.data(), Wire.Bytes.size());
    Columns[Leaf.Values].pushLength(Wire.Bytes.size());
  } else if (Field.isText() || Field.isBytes()) {
    IsRead = Wire.hasBytes();
    State.Text = Wire.Bytes;
  } else if (Field.IsRepeated) {
    IsRead = readNumbers(Wire, Field.Type, Columns[Leaf.Values]);
  } else {
    // If a field occurs several times, Protobuf uses the last value.
    Scratch.clear();
    IsRead = !Wire.hasBytes() && readNumbers(Wire, Field.Type, Scratch);
    if (IsRead)
      std::memcpy(&State.Number, Scratch.at(0),
                  elementSize(Field.elementType()));
  }
  if (IsRead)
    return Error::success();
  return featureError(ErrorCode::Malformed, Field.Name,
                      "expected " + Field.typeStr() + " in message " +
                          Type->root().Type + ", found something else");
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::size_t NestedReader::numElements(std::size_t Index) const {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const serdes::ElementStore &Values = Columns[Leaf.Values];
  return Leaf.Field.isText()
             ? Values.numLengths()
             : Values.size() / elementSize(Leaf.Field.elementType());
}

/// Returns true if the message that contains the field is present in the row.
bool NestedReader::hasParent(std::size_t Node) const {
  return Node == 0 || Type->nodes()[Node].IsRepeated ||
         NodeStates[Node].IsPresent;
}

Error NestedReader::endLeaf(std::size_t Index) {
  const NestedType::Leaf &Leaf = Type->leaves()[Index];
  const MessageField &Field = Leaf.Field;
  LeafState &State = Leaves[Index];
  serdes::ElementStore &Values = Columns[Leaf.Values];
  if (Field.IsRequired && !State.IsPresent && hasParent(Leaf.Node))
    return featureError(ErrorCode::Malformed, Field.Name,
                        "message " + Type->nodes()[Leaf.Node].Type +
                            " lacks this required field");
  if (!Field.IsRepeated && (Field.isText() || Field.isBytes()))
    Values.push(State.Text.data(), State.Text.size());
  if (!Field.IsRepeated && Field.isText())
    Values.pushLength(State.Text.size());
  if (!Field.isText() && !Leaf.isList())
    Values.push(&State.Number, elementSize(Field.elementType()));
  if (Leaf.Lengths != None) {
    const std::size_t Count = numElements(Index);
    Columns[Leaf.Lengths].push(
        static_cast<std::int64_t>(Count - State.NumBefore));
    State.NumBefore = Count;
  }
  if (Leaf.Presence != None)
    Columns[Leaf.Presence].push(static_cast<std::uint8_t>(State.IsPresent));
  return Error::success();
}

Error NestedReader::endNode(std::size_t Index) {
  const NestedType::Node &Node = Type->nodes()[Index];
  const NodeState &State = NodeStates[Index];
  if (Node.IsRequired && !State.IsPresent && hasParent(Node.Parent))
    return featureError(ErrorCode::Malformed, Node.Path,
                        "message " + Type->nodes()[Node.Parent].Type +
                            " lacks this required field");
  if (Node.Count != None)
    Columns[Node.Count].push(State.Count);
  if (Node.Presence != None)
    Columns[Node.Presence].push(static_cast<std::uint8_t>(State.IsPresent));
  return Error::success();
}

/// Appends the current row of a level to its columns.
Error NestedReader::endRow(std::size_t Index) {
  const NestedType::Level &Level = Type->levels()[Index];
  for (std::size_t Leaf : Level.Leaves)
    if (Error E = endLeaf(Leaf))
      return E;
  for (std::size_t Node : Level.Nodes)
    if (Error E = endNode(Node))
      return E;
  ++Rows[Index];
  // A message of two bytes can have a row of many bytes, so bound the memory
  // that a peer can occupy.
  NumBytes += Level.RowBytes;
  if (NumBytes > MaxMessage)
    return {ErrorCode::Malformed,
            "message " + Type->root().Type +
                ": its features need more than 2 GiB of memory"};
  return Error::success();
}

void NestedReader::resetRow(std::size_t Index) {
  const NestedType::Level &Level = Type->levels()[Index];
  for (std::size_t Leaf : Level.Leaves) {
    LeafState &State = Leaves[Leaf];
    State = {0, {}, false, State.NumBefore};
  }
  for (std::size_t Node : Level.Nodes)
    NodeStates[Node] = {};
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

TensorView NestedReader::view(std::size_t Index) const {
  const NestedType::Column &Column = Type->columns()[Index];
  const serdes::ElementStore &Store = Columns[Index];
  TensorView View;
  View.Name = Column.Name;
  View.Data = Store.at(0);
  View.NumBytes = Store.size();
  bool IsScalar = Column.Level == 0;
  switch (Column.Has) {
  case NestedType::Column::Content::Lengths:
    View.Type = ElementType::Int64;
    break;
  case NestedType::Column::Content::Presence:
    View.Type = ElementType::Bool;
    break;
  case NestedType::Column::Content::Values: {
    const NestedType::Leaf &Leaf = Type->leaves()[Column.Leaf];
    View.Type = Leaf.Field.elementType();
    IsScalar &= !Leaf.isList();
    break;
  }
  }
  if (IsScalar)
    return View;
  if (View.Type == ElementType::String) {
    View.Lengths = Store.lengths(0, Store.numLengths());
    View.Dims = {static_cast<std::int64_t>(Store.numLengths())};
  } else {
    View.Dims = {
        static_cast<std::int64_t>(Store.size() / elementSize(View.Type))};
  }
  return View;
}

/// Checks that no map has a key twice. Protobuf's own readers would drop an
/// entry.
Error NestedReader::checkKeys() {
  for (const NestedType::Node &Node : Type->nodes()) {
    if (!Node.IsMap || Rows[Node.Level] == 0)
      continue;
    const TensorView Keys =
        view(Type->leaves()[Node.Fields.front().Index].Values);
    // The maps of all messages are in one column, so check them one by one.
    const std::size_t NumMaps =
        Node.Count == None ? 1
                           : Columns[Node.Count].size() / sizeof(std::int64_t);
    const char *Text = static_cast<const char *>(Keys.Data);
    std::size_t First = 0;
    for (std::size_t I = 0; I < NumMaps; ++I) {
      std::size_t End = Rows[Node.Level];
      if (Node.Count != None) {
        std::int64_t Count = 0;
        std::memcpy(&Count, Columns[Node.Count].at(I * sizeof(Count)),
                    sizeof(Count));
        End = First + static_cast<std::size_t>(Count);
      }
      if (DuplicateKeys.find(Keys, Text, First, End))
        return featureError(ErrorCode::Malformed, Keys.Name,
                            "a map has the same key twice");
      for (; First < End; ++First)
        if (!Keys.Lengths.empty())
          Text += Keys.Lengths[First];
    }
  }
  return Error::success();
}

void NestedReader::addViews(const NestedType::Node &Node,
                            std::vector<TensorView> &Views) {
  for (const NestedType::Entry &Entry : Node.Fields) {
    if (Entry.Index == None)
      continue;
    if (!Entry.IsMessage) {
      const NestedType::Leaf &Leaf = Type->leaves()[Entry.Index];
      if (Leaf.Level == 0 && Leaf.Field.IsOptional &&
          !Leaves[Entry.Index].IsPresent)
        continue;
      for (std::size_t Column : {Leaf.Values, Leaf.Lengths, Leaf.Presence})
        if (Column != None)
          Views.push_back(view(Column));
      continue;
    }
    const NestedType::Node &Child = Type->nodes()[Entry.Index];
    // Absent messages of the level 0 have no features. In the other levels, the
    // column Presence shows which messages are absent.
    if (Child.IsOptional && Child.Level == 0 &&
        !NodeStates[Entry.Index].IsPresent)
      continue;
    for (std::size_t Column : {Child.Count, Child.Presence})
      if (Column != None)
        Views.push_back(view(Column));
    addViews(Child, Views);
  }
}

Error NestedReader::finish(std::vector<TensorView> &Views) {
  if (Type->empty())
    return Error::success();
  if (Error E = endRow(0))
    return E;
  if (Error E = checkKeys())
    return E;
  Views.reserve(Views.size() + Type->columns().size());
  addViews(Type->root(), Views);
  return Error::success();
}

void NestedReader::addMemory(
    std::vector<std::shared_ptr<const void>> &To) const {
  for (const serdes::ElementStore &Column : Columns)
    To.push_back(Column.memory());
}

} // namespace MLBridge::protobuf
