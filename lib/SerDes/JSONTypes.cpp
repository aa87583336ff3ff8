//===- JSONTypes.cpp - The "_types" of a JSON message ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads "_types", and looks up the type of a feature.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONTypes.h"

#include "SerDes/JSONNames.h"

#include <numeric>

namespace MLBridge::serdes {

static Error malformed(simdjson::error_code Code) {
  return jsonError(Code, quoted(JSONNames::Types));
}

/// Returns an error "feature 'x': in '_types': <What>".
static Error malformed(std::string_view Name, const std::string &What) {
  return featureError(ErrorCode::Malformed, Name,
                      "in " + quoted(JSONNames::Types) + ": " + What);
}

static Error readType(ondemand::value Value, JSONTypes::Entry &Out) {
  std::string_view Text;
  if (simdjson::error_code E = Value.get_string().get(Text))
    return malformed(Out.Name,
                     "its type: " + std::string(simdjson::error_message(E)));
  std::optional<ElementType> Type = parseElementType(Text);
  if (!Type)
    return malformed(Out.Name, "unknown type " + quoted(Text));
  Out.Type = *Type;
  return Error::success();
}

static Error readShape(ondemand::value Value, JSONTypes::Entry &Out) {
  ondemand::array Items;
  if (simdjson::error_code E = Value.get_array().get(Items))
    return malformed(Out.Name,
                     "its shape: " + std::string(simdjson::error_message(E)));
  Out.Dims.emplace();
  for (auto Item : Items) {
    std::int64_t Extent;
    if (simdjson::error_code E = Item.get_int64().get(Extent))
      return malformed(Out.Name,
                       "its shape: " + std::string(simdjson::error_message(E)));
    if (Extent < 0)
      return malformed(Out.Name,
                       "its shape has an extent of " + std::to_string(Extent));
    if (!Out.Dims->push(Extent))
      return featureError(ErrorCode::Unsupported, Out.Name,
                          "a tensor has at most " +
                              std::to_string(Shape::MaxRank) + " dimensions");
  }
  return Error::success();
}

Error JSONTypes::readEntry(ondemand::value Value, Entry &Out) {
  Out.Dims.reset();
  ondemand::json_type Kind;
  if (simdjson::error_code E = Value.type().get(Kind))
    return malformed(E);
  if (Kind != ondemand::json_type::object)
    return readType(Value, Out);

  ondemand::object Fields;
  if (simdjson::error_code E = Value.get_object().get(Fields))
    return malformed(E);
  bool HasType = false;
  for (auto Item : Fields) {
    ondemand::field Field;
    std::string_view Key;
    if (simdjson::error_code E = std::move(Item).get(Field))
      return malformed(E);
    if (simdjson::error_code E = Field.unescaped_key().get(Key))
      return malformed(E);
    bool IsType = Key == "type";
    if (!IsType && Key != "shape")
      return malformed(Out.Name, "unknown key " + quoted(Key));
    if (IsType ? HasType : Out.Dims.has_value())
      return malformed(Out.Name, quoted(Key) + " appears twice");
    HasType |= IsType;
    if (Error E = IsType ? readType(Field.value(), Out)
                         : readShape(Field.value(), Out))
      return E;
  }
  return HasType ? Error::success() : malformed(Out.Name, "it has no type");
}

Error JSONTypes::read(ondemand::value Value) {
  clear();
  ondemand::object Fields;
  if (simdjson::error_code E = Value.get_object().get(Fields))
    return malformed(E);
  for (auto Item : Fields) {
    ondemand::field Field;
    std::string_view Name;
    if (simdjson::error_code E = std::move(Item).get(Field))
      return malformed(E);
    if (simdjson::error_code E = Field.unescaped_key().get(Name))
      return malformed(E);
    if (Count == Entries.size())
      Entries.emplace_back();
    Entry &Out = Entries[Count];
    if (Out.Name != Name) {
      Out.Name = Name;
      NumDistinct = std::min(NumDistinct, Count);
    }
    ++Count;
    if (Error E = readEntry(Field.value(), Out))
      return E;
  }
  if (Count <= NumDistinct)
    return Error::success();
  ByName.clear();
  if (std::optional<std::string_view> Duplicate =
          Duplicates.find(Span<const Entry>(Entries.data(), Count)))
    return malformed(*Duplicate, "appears twice");
  NumDistinct = Count;
  return Error::success();
}

void JSONTypes::startLookups() {
  Next = 0;
  for (std::size_t I = 0; I < Count; ++I)
    Entries[I].IsUsed = false;
}

const JSONTypes::Entry *JSONTypes::lookUp(std::string_view Name) {
  if (Next < Count && Entries[Next].Name == Name) {
    Entries[Next].IsUsed = true;
    return &Entries[Next++];
  }
  auto NameOf = [&](std::size_t I) -> std::string_view {
    return Entries[I].Name;
  };
  if (ByName.size() != Count) {
    ByName.resize(Count);
    std::iota(ByName.begin(), ByName.end(), std::size_t(0));
    std::ranges::sort(ByName, {}, NameOf);
  }
  auto Found = std::ranges::lower_bound(ByName, Name, {}, NameOf);
  if (Found == ByName.end() || NameOf(*Found) != Name)
    return nullptr;
  Entries[*Found].IsUsed = true;
  Next = *Found + 1;
  return &Entries[*Found];
}

Error JSONTypes::checkAllUsed() const {
  for (std::size_t I = 0; I < Count; ++I)
    if (!Entries[I].IsUsed)
      return malformed(Entries[I].Name, "the message has no such feature");
  return Error::success();
}

} // namespace MLBridge::serdes
