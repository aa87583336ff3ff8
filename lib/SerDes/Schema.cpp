//===- Schema.cpp - Names, types and shapes of a message ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks tensors, and compares a message's schema with the last message's
/// schema.
///
//===----------------------------------------------------------------------===//

#include "SerDes/Schema.h"

#include "Core/TensorForm.h"
#include "Support/PrintableText.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

namespace MLBridge::serdes {

std::string quoted(std::string_view Name) {
  return "'" + printable(Name, /*MaxBytes=*/64) + "'";
}

Error featureError(ErrorCode Code, std::string_view Name,
                   const std::string &What) {
  return {Code, "feature " + quoted(Name) + ": " + What};
}

//===----------------------------------------------------------------------===//
// One tensor
//===----------------------------------------------------------------------===//

Error checkForm(const TensorView &Tensor) {
  std::string Why = detail::contradiction(Tensor);
  return Why.empty()
             ? Error::success()
             : featureError(ErrorCode::InvalidArgument, Tensor.Name, Why);
}

/// Returns true if all strings of \p Tensor are UTF-8. This is the case if the
/// whole text is UTF-8 and no string begins inside a character.
static bool isUTF8(const TensorView &Tensor) {
  std::string_view Text = Tensor.text();
  if (!simdjson::validate_utf8(Text.data(), Text.size()))
    return false;
  std::size_t Start = 0;
  for (std::uint64_t Length : Tensor.Lengths) {
    if (Start < Text.size() && (Text[Start] & 0xC0) == 0x80)
      return false;
    Start += Length;
  }
  return true;
}

Error checkElements(const TensorView &Tensor, ErrorCode Code) {
  if (Tensor.Type == ElementType::Bool) {
    std::byte All{0};
    for (std::byte B : Tensor.bytes())
      All |= B;
    if (All > std::byte{1})
      return featureError(Code, Tensor.Name,
                          "expected bools of 0 or 1, found another byte");
  } else if (Tensor.Type == ElementType::String && Tensor.NumBytes != 0) {
    if (!isUTF8(Tensor))
      return featureError(Code, Tensor.Name,
                          "expected UTF-8, found other bytes");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::optional<std::string_view> DuplicateFinder::findInSorted() {
  std::ranges::sort(Sorted);
  auto Duplicate = std::ranges::adjacent_find(Sorted);
  if (Duplicate == Sorted.end())
    return std::nullopt;
  return *Duplicate;
}

bool Schema::Entry::hasFormOf(const TensorView &Tensor) const {
  return Type == Tensor.Type && NumBytes == Tensor.NumBytes &&
         Dims == Tensor.Dims && std::ranges::equal(Lengths, Tensor.Lengths);
}

bool Schema::hasNamesOf(Span<const TensorView> Features) const {
  if (!IsValid || Count != Features.size())
    return false;
  for (std::size_t I = 0; I < Count; ++I)
    if (Entries[I].Name != Features[I].Name)
      return false;
  return true;
}

Error Schema::checkNames(Span<const TensorView> Features) {
  for (const TensorView &Feature : Features) {
    if (Feature.Name.empty())
      return {ErrorCode::InvalidArgument, "a feature has an empty name"};
    if (!simdjson::validate_utf8(Feature.Name.data(), Feature.Name.size()))
      return featureError(ErrorCode::InvalidArgument, Feature.Name,
                          "its name is not UTF-8");
  }
  if (std::optional<std::string_view> Duplicate = Duplicates.find(Features))
    return featureError(ErrorCode::InvalidArgument, *Duplicate,
                        "appears twice");
  return Error::success();
}

Expected<bool> Schema::update(Span<const TensorView> Features) {
  bool SameNames = hasNamesOf(Features);
  bool Same = SameNames;
  for (std::size_t I = 0; Same && I < Count; ++I)
    Same = Entries[I].hasFormOf(Features[I]);
  if (Same)
    return false;

  IsValid = false;
  if (!SameNames)
    if (Error E = checkNames(Features))
      return E;
  for (const TensorView &Feature : Features)
    if (Error E = checkForm(Feature))
      return E;
  Count = Features.size();
  if (Entries.size() < Count)
    Entries.resize(Count);
  for (std::size_t I = 0; I < Count; ++I) {
    const TensorView &Feature = Features[I];
    Entry &E = Entries[I];
    E.Name = Feature.Name;
    E.Type = Feature.Type;
    E.Dims = Feature.Dims;
    E.NumBytes = Feature.NumBytes;
    E.Lengths.assign(Feature.Lengths.begin(), Feature.Lengths.end());
  }
  IsValid = true;
  return true;
}

} // namespace MLBridge::serdes
