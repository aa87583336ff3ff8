//===- MessageType.cpp - The fields of a user-defined message -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/MessageType.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace MLBridge::protobuf {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

MessageType::MessageType(const Descriptor &Message)
    : Name(Message.full_name()),
      Nested(std::make_shared<const NestedType>(Message)) {
  Fields.reserve(static_cast<std::size_t>(Message.field_count()));
  for (int I = 0; I < Message.field_count(); ++I) {
    const FieldDescriptor &F = *Message.field(I);
    if (F.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      Fields.push_back(Field::of(F, F.name()));
  }
  std::ranges::sort(Fields, {}, &Field::Number);
}

std::size_t MessageType::find(std::string_view FieldName) const {
  auto Found = std::ranges::find(Fields, FieldName, &Field::Name);
  return static_cast<std::size_t>(Found - Fields.begin());
}

std::size_t MessageType::find(int Number) const {
  auto Found = std::ranges::lower_bound(Fields, Number, {}, &Field::Number);
  if (Found == Fields.end() || Found->Number != Number)
    return Fields.size();
  return static_cast<std::size_t>(Found - Fields.begin());
}

std::string MessageType::fieldNames() const {
  std::string Names;
  auto Add = [&](const std::string &Next) {
    Names += (Names.empty() ? "" : ", ") + Next;
  };
  for (const Field &F : Fields)
    Add(F.Name);
  // Messages can have many features, so bound the length of the text.
  constexpr std::size_t MaxNested = 64;
  const auto &Columns = Nested->columns();
  for (std::size_t I = 0; I < std::min(MaxNested, Columns.size()); ++I)
    Add(Columns[I].Name);
  if (Columns.size() > MaxNested)
    Add("...");
  return Names.empty() ? "none" : Names;
}

} // namespace MLBridge::protobuf
