//===- Advice.cpp - A model's reply ---------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts advice to other element types. For each pair of types,
/// convertValue() decides whether the target type can represent a value.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Advice.h"

#include "Support/PrintableText.h"

#include "Core/WithNumber.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

using namespace MLBridge;

//===----------------------------------------------------------------------===//
// One value
//===----------------------------------------------------------------------===//

/// Returns the absolute value of any integer, including the most negative
/// integer.
template <typename T> static std::uint64_t magnitude(T Value) {
  auto Bits = static_cast<std::uint64_t>(Value);
  return Value < 0 ? -Bits : Bits;
}

/// Converts \p Value and writes the result to \p Out. Returns false if the type
/// To cannot represent the value.
template <typename From, typename To>
static bool convertValue(From Value, To &Out) {
  static_assert(std::numeric_limits<float>::is_iec559 &&
                std::numeric_limits<double>::is_iec559);
  if constexpr (std::is_same_v<To, bool>) {
    Out = Value != 0;
    return Value == 0 || Value == 1;
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    Out = static_cast<To>(Value);
    return std::in_range<To>(Value);
  } else if constexpr (std::is_integral_v<From>) {
    // The conversion is exact if the significand has enough digits for the bits
    // from the lowest to the highest set bit.
    std::uint64_t Bits = magnitude(Value);
    Out = static_cast<To>(Value);
    return Bits == 0 || std::bit_width(Bits >> std::countr_zero(Bits)) <=
                            std::numeric_limits<To>::digits;
  } else if constexpr (std::is_integral_v<To>) {
    // Compare with the smallest integer and with the largest integer plus one.
    // Both are exact in every floating-point type, because they are 0 or powers
    // of two. The largest integer itself is not always exact. A NaN fails the
    // comparison.
    using Limits = std::numeric_limits<To>;
    const From Lowest = static_cast<From>(Limits::min());
    const From TooLarge = std::ldexp(From(1), Limits::digits);
    if (!(Value >= Lowest && Value < TooLarge) || std::trunc(Value) != Value)
      return false;
    Out = static_cast<To>(Value);
    return true;
  } else {
    Out = static_cast<To>(Value);
    return !std::isinf(Out) || std::isinf(Value);
  }
}

template <typename T> static std::string toText(T Value) {
  char Text[32]; // Any number has fewer than 32 characters.
  return {Text, std::to_chars(Text, std::end(Text), Value).ptr};
}

//===----------------------------------------------------------------------===//
// All elements
//===----------------------------------------------------------------------===//

static std::string nameOf(const TensorView &Tensor) {
  return "advice '" + printable(Tensor.Name) + "'";
}

/// Reads element \p I, which must be a byte that is 0 or 1. Reads the byte only
/// once, because another process may be changing it.
static Error readBool(const TensorView &Tensor, std::size_t I,
                      std::uint8_t &Out) {
  const auto *Bytes = static_cast<const volatile std::uint8_t *>(Tensor.Data);
  Out = Bytes[I];
  if (Out <= 1)
    return Error::success();
  return {ErrorCode::Malformed, nameOf(Tensor) +
                                    ": expected a bool of 0 or 1, found " +
                                    toText(int(Out))};
}

/// Converts bools to numbers, or to bytes that are 0 or 1.
template <typename To>
static Error convertBools(const TensorView &Tensor, To *Out) {
  for (std::size_t I = 0; I != Tensor.NumBytes; ++I) {
    std::uint8_t Value = 0;
    if (Error E = readBool(Tensor, I, Value))
      return E;
    Out[I] = static_cast<To>(Value);
  }
  return Error::success();
}

template <typename From, typename To>
static Error convertAll(const TensorView &Tensor, To *Out) {
  const auto *In = static_cast<const std::byte *>(Tensor.Data);
  for (std::size_t I = 0, E = Tensor.numElements(); I != E; ++I) {
    // Use memcpy, because data from a foreign peer may be unaligned.
    From Value;
    std::memcpy(&Value, In + I * sizeof(From), sizeof(From));
    if (!convertValue(Value, Out[I]))
      return {ErrorCode::SchemaMismatch,
              nameOf(Tensor) + ": element " + toText(I) + " of " +
                  Tensor.typeStr() + " is " + toText(Value) + ", which " +
                  std::string(elementTypeName(*elementTypeOf<To>())) +
                  " cannot represent"};
  }
  return Error::success();
}

Error detail::convertElements(const TensorView &Tensor, ElementType To,
                              void *Out) {
  if (Tensor.Type == ElementType::String || To == ElementType::String)
    return adviceMismatch(Tensor, elementTypeName(To));
  if (Tensor.Type == ElementType::Bool) {
    if (To == ElementType::Bool)
      return convertBools(Tensor, static_cast<std::uint8_t *>(Out));
    return withNumber(To, [&](auto Target) {
      return convertBools(Tensor, static_cast<decltype(Target) *>(Out));
    });
  }
  if (Tensor.Type == To) {
    if (Tensor.NumBytes != 0)
      std::memcpy(Out, Tensor.Data, Tensor.NumBytes);
    return Error::success();
  }
  return withNumber(Tensor.Type, [&](auto Source) {
    using FromType = decltype(Source);
    if (To == ElementType::Bool)
      return convertAll<FromType>(Tensor, static_cast<bool *>(Out));
    return withNumber(To, [&](auto Target) {
      return convertAll<FromType>(Tensor, static_cast<decltype(Target) *>(Out));
    });
  });
}

Error detail::adviceMismatch(const TensorView &Tensor,
                             std::string_view Wanted) {
  std::string Text = nameOf(Tensor) + ": expected " + std::string(Wanted) +
                     ", found " + Tensor.typeStr();
  const bool WantsChoice = Wanted == "bool" || Wanted.starts_with("int") ||
                           Wanted.starts_with("uint");
  const bool IsFloating =
      Tensor.Type == ElementType::Float || Tensor.Type == ElementType::Double;
  if (WantsChoice && IsFloating && Tensor.numElements() > 1)
    Text += "; if these are scores, export the model with --decide argmax:" +
            printable(Tensor.Name) +
            ", or add ?decide=argmax to the spec of a model file";
  return {ErrorCode::SchemaMismatch, Text};
}

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

Expected<std::string> detail::stringOf(const TensorView &Tensor) {
  if (Tensor.Type != ElementType::String || Tensor.numElements() != 1)
    return adviceMismatch(Tensor, "string");
  return std::string(Tensor.text());
}

Expected<std::vector<std::string>> detail::stringsOf(const TensorView &Tensor) {
  if (Tensor.Type != ElementType::String)
    return adviceMismatch(Tensor, "a list of strings");
  std::string_view Text = Tensor.text();
  std::vector<std::string> Strings;
  if (!Tensor.isStringList()) {
    Strings.emplace_back(Text);
    return Strings;
  }
  Strings.reserve(Tensor.Lengths.size());
  for (std::uint64_t Length : Tensor.Lengths) {
    if (Length > Text.size())
      return Error(ErrorCode::Malformed,
                   nameOf(Tensor) + ": its strings are longer than its " +
                       toText(Tensor.NumBytes) + " bytes");
    Strings.emplace_back(Text.substr(0, Length));
    Text.remove_prefix(Length);
  }
  return Strings;
}

//===----------------------------------------------------------------------===//
// Lookup by name
//===----------------------------------------------------------------------===//

const TensorView *Advice::find(std::string_view Name) const {
  for (const TensorView &Tensor : Tensors)
    if (Tensor.Name == Name)
      return &Tensor;
  return nullptr;
}

std::string Advice::str() const {
  constexpr std::size_t MaxListed = 8;
  std::string Text;
  for (const TensorView &Tensor :
       Tensors.subspan(0, std::min(Tensors.size(), MaxListed))) {
    if (!Text.empty())
      Text += ", ";
    Text += "'" + printable(Tensor.Name) + "' " + Tensor.typeStr();
  }
  if (Tensors.size() > MaxListed)
    Text += " and " + std::to_string(Tensors.size() - MaxListed) + " more";
  return Text.empty() ? "nothing" : Text;
}

Expected<const TensorView *> Advice::only() const {
  if (Tensors.size() == 1)
    return &Tensors.front();
  if (const TensorView *Out = find("out"))
    return Out;
  return Error(ErrorCode::SchemaMismatch,
               "advice: expected one output or one called 'out', found " +
                   str());
}

Expected<const TensorView *> Advice::named(std::string_view Name) const {
  if (const TensorView *Tensor = find(Name))
    return Tensor;
  return Error(ErrorCode::SchemaMismatch, "advice: expected an output '" +
                                              printable(Name) + "', found " +
                                              str());
}
