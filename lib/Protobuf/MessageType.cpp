//===- MessageType.cpp - The fields of a user-defined message -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/MessageType.h"

#include "SerDes/Schema.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace MLBridge::protobuf {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string MessageType::Field::typeStr() const {
  std::string Text = IsRepeated ? "repeated " : "";
  return Text +=
         FieldDescriptor::TypeName(static_cast<FieldDescriptor::Type>(Type));
}

/// Returns the reason why \p Field cannot hold a tensor. Returns an empty
/// string if it can.
static std::string obstacle(const FieldDescriptor &Field) {
  if (Field.number() == MessageType::ReservedNumber)
    return "its number is reserved for the protocol's own tensors";
  if (Field.is_map())
    return "it is a map";
  if (Field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
    return "it is a message";
  if (Field.real_containing_oneof())
    return "it is in a oneof";
  if (Field.is_repeated() && Field.type() == FieldDescriptor::TYPE_BYTES)
    return "it is a list of bytes";
  return {};
}

void MessageType::add(const FieldDescriptor &F) {
  if (std::string Why = obstacle(F); !Why.empty() && !FirstError)
    FirstError = {ErrorCode::Unsupported,
                  "field " + serdes::quoted(F.name()) + " of message " + Name +
                      " cannot hold a feature: " + Why +
                      "; its fields can be numbers, bools, enums, strings, "
                      "bytes, and repeated ones"};
  Fields.push_back({F.name(), F.number(),
                    static_cast<Format::FieldType>(F.type()), F.is_repeated(),
                    F.is_packed(), F.has_optional_keyword(), F.is_required()});
}

MessageType::MessageType(const Descriptor &Message)
    : Name(Message.full_name()) {
  for (int I = 0; I < Message.field_count(); ++I)
    add(*Message.field(I));
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
  for (const Field &F : Fields)
    Names += (Names.empty() ? "" : ", ") + F.Name;
  return Names.empty() ? "none" : Names;
}

} // namespace MLBridge::protobuf
