//===- MessageField.cpp - A field of a user-defined message ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/MessageField.h"

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Extend/ReservedNames.h"
#include "Protobuf/MessageType.h"
#include "SerDes/Schema.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstring>

namespace MLBridge::protobuf {

using google::protobuf::FieldDescriptor;

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// Returns true for reserved names that only some messages have. If the field
/// of such a name is absent, it has no value rather than the value 0.
static bool isOptionalInProtocol(std::string_view Name) {
  static constexpr std::string_view Always[] = {
      ReservedNames::Command, ReservedNames::Reward, ReservedNames::Terminated,
      ReservedNames::Truncated};
  return Name.starts_with('_') &&
         std::ranges::find(Always, Name) == std::end(Always);
}

MessageField MessageField::of(const FieldDescriptor &F, std::string Name) {
  MessageField Field;
  Field.Number = F.number();
  Field.Type = static_cast<Format::FieldType>(F.type());
  Field.IsRepeated = F.is_repeated();
  Field.IsPacked = F.is_packed();
  // The fields of a map's entry always have a value.
  const bool IsInMap = F.containing_type()->map_key() != nullptr;
  Field.IsOptional = !IsInMap && !F.is_repeated() &&
                     (F.has_optional_keyword() || F.real_containing_oneof() ||
                      isOptionalInProtocol(Name));
  Field.IsRequired = F.is_required();
  if (const auto *Oneof = F.real_containing_oneof())
    Field.Oneof = static_cast<std::size_t>(Oneof->index());
  if (const auto *Enum = F.enum_type()) {
    auto Values = std::make_shared<EnumValues>();
    Values->reserve(static_cast<std::size_t>(Enum->value_count()));
    for (int I = 0; I < Enum->value_count(); ++I)
      Values->emplace_back(Enum->value(I)->name(), Enum->value(I)->number());
    Field.Values = std::move(Values);
  }
  Field.Name = std::move(Name);
  return Field;
}

std::string MessageField::typeStr() const {
  std::string Text = IsRepeated ? "repeated " : "";
  return Text +=
         FieldDescriptor::TypeName(static_cast<FieldDescriptor::Type>(Type));
}

std::string obstacleOf(const FieldDescriptor &Field) {
  if (Field.number() == MessageType::ReservedNumber)
    return "its number is reserved for the protocol's own tensors";
  if (Field.type() == FieldDescriptor::TYPE_GROUP)
    return "it is a group";
  if (Field.is_repeated() && Field.type() == FieldDescriptor::TYPE_BYTES)
    return "it is a list of bytes";
  return {};
}

Error unsupportedField(const std::string &Name, const std::string &Message,
                       const std::string &Why) {
  return {ErrorCode::Unsupported,
          "field " + serdes::quoted(Name) + " of message " + Message +
              " cannot hold a feature: " + Why +
              "; its fields can be numbers, bools, enums, strings, bytes, "
              "messages, maps, and repeated ones"};
}

Error unknownField(int Number, const std::string &Message) {
  return {ErrorCode::SchemaMismatch,
          "message " + Message + " has the unknown field number " +
              std::to_string(Number) +
              ": the two sides have different versions of its .proto"};
}

//===----------------------------------------------------------------------===//
// Values
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

bool MessageField::accepts(ElementType From) const {
  if (isBytes())
    return From == ElementType::UInt8;
  if (Values && From == ElementType::String)
    return true;
  return kindOf(elementType()) == kindOf(From);
}

/// Returns the number of the enum value called \p Name.
static std::optional<std::int32_t>
numberOf(const MessageField::EnumValues &Values, std::string_view Name) {
  auto Found = std::ranges::find(Values, Name, [](const auto &Value) {
    return std::string_view(Value.first);
  });
  return Found == Values.end() ? std::nullopt : std::optional(Found->second);
}

std::string MessageField::convert(const TensorView &Feature, void *Out) const {
  if (!Values || Feature.Type != ElementType::String) {
    if (detail::convertElements(Feature, elementType(), Out))
      return Feature.typeStr() + " with a value that does not fit";
    return {};
  }
  const std::uint64_t Single[] = {Feature.NumBytes};
  const Span<const std::uint64_t> Lengths =
      Feature.isStringList() ? Feature.Lengths
                             : Span<const std::uint64_t>(Single, 1);
  const char *Text = static_cast<const char *>(Feature.Data);
  std::byte *Next = static_cast<std::byte *>(Out);
  for (std::uint64_t Length : Lengths) {
    const std::string_view Name(Text, Length);
    const std::optional<std::int32_t> Number = numberOf(*Values, Name);
    if (!Number)
      return "the name " + serdes::quoted(Name) + ", which the enum lacks";
    std::memcpy(Next, &*Number, sizeof(*Number));
    Next += sizeof(*Number);
    Text += Length;
  }
  return {};
}

} // namespace MLBridge::protobuf
