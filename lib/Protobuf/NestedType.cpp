//===- NestedType.cpp - The messages in a user-defined message ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/NestedType.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <numeric>

namespace MLBridge::protobuf {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

/// Creates the description. The nodes refer to each other by index, because
/// their vector grows.
struct NestedType::Builder {
  NestedType &Type;
  /// The messages that enclose the current field.
  std::vector<const Descriptor *> Open;

  std::size_t addColumn(std::string Name, Column::Content Has,
                        std::size_t InLevel, std::size_t OfLeaf,
                        std::size_t OfNode);
  Error addFields(const Descriptor &Message, std::size_t To);
  Error addField(const FieldDescriptor &Field, std::size_t To);
  Error addMessage(const FieldDescriptor &Field, std::size_t To,
                   const std::string &Name);
  void addLeaf(const FieldDescriptor &Field, std::size_t To,
               const std::string &Name);
};

std::size_t NestedType::Builder::addColumn(std::string Name,
                                           Column::Content Has,
                                           std::size_t InLevel,
                                           std::size_t OfLeaf,
                                           std::size_t OfNode) {
  Type.Columns.push_back({std::move(Name), Has, InLevel, OfLeaf, OfNode});
  return Type.Columns.size() - 1;
}

void NestedType::Builder::addLeaf(const FieldDescriptor &Field, std::size_t To,
                                  const std::string &Name) {
  const std::size_t Index = Type.Leaves.size();
  const std::size_t InLevel = Type.Nodes[To].Level;
  Leaf Made;
  Made.Field = MessageField::of(Field, Name);
  Made.Level = InLevel;
  Made.Node = To;
  Made.Values = addColumn(Name, Column::Content::Values, InLevel, Index, None);
  NestedType::Level &Rows = Type.Levels[InLevel];
  Rows.RowBytes += Made.isList() || Made.Field.isText()
                       ? sizeof(std::uint64_t)
                       : elementSize(Made.Field.elementType());
  if (InLevel != 0 && Made.isList())
    Made.Lengths =
        addColumn(Name + "[]", Column::Content::Lengths, InLevel, Index, None);
  if (InLevel != 0 && Made.Field.IsOptional) {
    Made.Presence =
        addColumn(Name + "?", Column::Content::Presence, InLevel, Index, None);
    Rows.RowBytes += 1;
  }
  Rows.Leaves.push_back(Index);
  Type.Leaves.push_back(std::move(Made));
}

Error NestedType::Builder::addMessage(const FieldDescriptor &Field,
                                      std::size_t To, const std::string &Name) {
  const Descriptor &Message = *Field.message_type();
  if (std::ranges::find(Open, &Message) != Open.end())
    return unsupportedField(Name, Type.root().Type,
                            "its message " + Message.full_name() +
                                " contains itself");
  if (Open.size() == MaxDepth)
    return unsupportedField(Name, Type.root().Type,
                            "it is in more than " + std::to_string(MaxDepth) +
                                " messages");
  const std::size_t Index = Type.Nodes.size();
  const std::size_t Above = Type.Nodes[To].Level;
  Node Made;
  Made.Path = Field.is_repeated() ? Name + "[]" : Name;
  Made.Type = Message.full_name();
  Made.Number = Field.number();
  Made.IsRepeated = Field.is_repeated();
  Made.IsMap = Field.is_map();
  Made.IsOptional = !Made.IsRepeated && (Field.has_optional_keyword() ||
                                         Field.real_containing_oneof());
  Made.IsRequired = Field.is_required();
  Made.Parent = To;
  Made.Level = Above;
  Made.FirstColumn = Type.Columns.size();
  if (Made.IsRepeated) {
    Made.Level = Type.Levels.size();
    Type.Levels.push_back({Index, Above, {}, {}, 0});
    if (Above != 0)
      Made.Count =
          addColumn(Made.Path, Column::Content::Lengths, Above, None, Index);
  } else if (Made.IsOptional) {
    Made.Presence =
        addColumn(Name + "?", Column::Content::Presence, Above, None, Index);
  }
  Type.Levels[Above].Nodes.push_back(Index);
  Type.Levels[Above].RowBytes += sizeof(std::uint64_t);
  const bool HasNoColumns = Made.FirstColumn == Type.Columns.size();
  Type.Nodes.push_back(std::move(Made));
  if (Error E = addFields(Message, Index))
    return E;
  Node &Done = Type.Nodes[Index];
  // If there are no columns whose rows could be counted, the number of messages
  // needs a column.
  if (Done.IsRepeated && HasNoColumns &&
      Done.FirstColumn == Type.Columns.size())
    Done.Count =
        addColumn(Done.Path, Column::Content::Lengths, Above, None, Index);
  Done.EndColumn = Type.Columns.size();
  return Error::success();
}

Error NestedType::Builder::addField(const FieldDescriptor &Field,
                                    std::size_t To) {
  const bool IsMessage = Field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const bool IsRoot = To == 0;
  const std::string Name =
      IsRoot ? Field.name() : Type.Nodes[To].Path + "." + Field.name();
  if (std::string Why = obstacleOf(Field); !Why.empty())
    return unsupportedField(Name, Type.root().Type, Why);
  Entry Made{Field.number(), IsMessage, None, None};
  if (IsMessage)
    Made.Index = Type.Nodes.size();
  else if (!IsRoot)
    Made.Index = Type.Leaves.size();
  if (const auto *In = Field.real_containing_oneof()) {
    Made.Oneof = static_cast<std::size_t>(In->index());
    Type.Nodes[To].Oneofs[Made.Oneof].Members.push_back(Made);
  }
  Type.Nodes[To].Fields.push_back(Made);
  if (IsMessage)
    if (Error E = addMessage(Field, To, Name))
      return E;
  if (!IsMessage && !IsRoot)
    addLeaf(Field, To, Name);
  if (std::max(Type.Columns.size(), Type.Nodes.size()) > MaxColumns)
    return unsupportedField(Name, Type.root().Type,
                            "there are more than " +
                                std::to_string(MaxColumns) + " fields with it");
  return Error::success();
}

Error NestedType::Builder::addFields(const Descriptor &Message,
                                     std::size_t To) {
  std::vector<const FieldDescriptor *> Fields;
  Fields.reserve(static_cast<std::size_t>(Message.field_count()));
  for (int I = 0; I < Message.field_count(); ++I)
    Fields.push_back(Message.field(I));
  std::ranges::sort(Fields, {}, &FieldDescriptor::number);
  for (int I = 0; I < Message.real_oneof_decl_count(); ++I)
    Type.Nodes[To].Oneofs.push_back({Message.oneof_decl(I)->name(), {}});
  Open.push_back(&Message);
  for (const FieldDescriptor *Field : Fields)
    if (Error E = addField(*Field, To))
      return E;
  Open.pop_back();
  return Error::success();
}

NestedType::NestedType(const Descriptor &Message) {
  Levels.emplace_back();
  Node Root;
  Root.Type = Message.full_name();
  Nodes.push_back(std::move(Root));
  Builder Build{*this, {}};
  FirstError = Build.addFields(Message, 0);
  Nodes.front().EndColumn = Columns.size();
  ByName.resize(Columns.size());
  std::iota(ByName.begin(), ByName.end(), std::size_t(0));
  std::ranges::sort(ByName, {}, [&](std::size_t I) { return Columns[I].Name; });
}

std::size_t NestedType::find(std::string_view Name) const {
  auto Found = std::ranges::lower_bound(ByName, Name, {}, [&](std::size_t I) {
    return std::string_view(Columns[I].Name);
  });
  if (Found == ByName.end() || Columns[*Found].Name != Name)
    return None;
  return *Found;
}

const NestedType::Entry *NestedType::Node::find(int FieldNumber) const {
  auto Found =
      std::ranges::lower_bound(Fields, FieldNumber, {}, &Entry::Number);
  if (Found == Fields.end() || Found->Number != FieldNumber)
    return nullptr;
  return &*Found;
}

//===----------------------------------------------------------------------===//
// Keys of maps
//===----------------------------------------------------------------------===//

bool DuplicateKeyFinder::find(const TensorView &Keys, const char *Text,
                              std::size_t First, std::size_t End) {
  Sorted.clear();
  Sorted.reserve(End - First);
  const std::size_t Size = elementSize(Keys.Type);
  for (std::size_t I = First; I < End; ++I) {
    if (Keys.Type != ElementType::String) {
      Sorted.emplace_back(static_cast<const char *>(Keys.Data) + I * Size,
                          Size);
      continue;
    }
    Sorted.emplace_back(Text, Keys.Lengths[I]);
    Text += Keys.Lengths[I];
  }
  std::ranges::sort(Sorted);
  return std::ranges::adjacent_find(Sorted) != Sorted.end();
}

} // namespace MLBridge::protobuf
