//===- JSONWriter.cpp - Writes JSON messages ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes one JSON object. The format is specified in
/// docs/reference/wire-format.md. Each number has the shortest form that reads
/// back as the same value. Therefore, floats and 64-bit integers are preserved
/// exactly.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONWriter.h"

#include "SerDes/JSONNames.h"
#include "SerDes/JSONText.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::serdes;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Returns the maximum length of an element of \p Type in JSON, in bytes.
static std::size_t maxElementSize(ElementType Type) {
  switch (Type) {
  case ElementType::Int8:
    return std::string_view("-128").size();
  case ElementType::Int16:
    return std::string_view("-32768").size();
  case ElementType::Int32:
    return std::string_view("-2147483648").size();
  case ElementType::Int64:
    return std::string_view("-9223372036854775808").size();
  case ElementType::UInt8:
    return std::string_view("255").size();
  case ElementType::UInt16:
    return std::string_view("65535").size();
  case ElementType::UInt32:
    return std::string_view("4294967295").size();
  case ElementType::UInt64:
    return std::string_view("18446744073709551615").size();
  case ElementType::Float:
    return std::string_view("-1.17549435e-38").size();
  case ElementType::Double:
    return std::string_view("-2.2250738585072014e-308").size();
  case ElementType::Bool:
    return std::string_view("false").size();
  case ElementType::String:
    break;
  }
  return 0;
}

static char *writeNonFinite(char *Out, double Value) {
  if (std::isnan(Value))
    return writeQuoted(Out, JSONNames::NaN);
  return writeQuoted(Out, Value < 0 ? JSONNames::NegativeInfinity
                                    : JSONNames::Infinity);
}

template <typename T> static char *writeElement(char *Out, T Value) {
  constexpr ElementType Type = *elementTypeOf<T>();
  if constexpr (Type == ElementType::Bool)
    return writeText(Out, Value ? "true" : "false");
  else {
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(Value)) [[unlikely]]
        return writeNonFinite(Out, Value);
    return std::to_chars(Out, Out + maxElementSize(Type), Value).ptr;
  }
}

/// Writes the element at \p Data, which need not be aligned. Returns the end of
/// the written text.
template <typename T> static char *writeAt(char *Out, const std::byte *Data) {
  T Value;
  std::memcpy(&Value, Data, sizeof(T));
  return writeElement(Out, Value);
}

/// Writes the elements at \p Data as nested arrays of \p Extents. Advances \p
/// Data past the elements. Returns the end of the written text.
template <typename T>
static char *writeNested(char *Out, Span<const std::int64_t> Extents,
                         const std::byte *&Data) {
  *Out++ = '[';
  if (Extents.size() == 1) {
    const std::byte *End =
        Data + static_cast<std::size_t>(Extents[0]) * sizeof(T);
    for (const std::byte *Next = Data; Next != End; Next += sizeof(T)) {
      if (Next != Data)
        *Out++ = ',';
      Out = writeAt<T>(Out, Next);
    }
    Data = End;
  } else {
    for (std::int64_t I = 0; I < Extents[0]; ++I) {
      if (I != 0)
        *Out++ = ',';
      Out = writeNested<T>(Out, Extents.subspan(1), Data);
    }
  }
  *Out++ = ']';
  return Out;
}

template <typename T>
static char *writeNumbers(char *Out, const TensorView &Tensor) {
  const std::byte *Data = Tensor.bytes().data();
  if (Tensor.Dims.isScalar())
    return writeAt<T>(Out, Data);
  return writeNested<T>(Out, {Tensor.Dims.begin(), Tensor.Dims.rank()}, Data);
}

static char *writeStrings(char *Out, const TensorView &Tensor) {
  std::string_view Text = Tensor.text();
  *Out++ = '[';
  const char *Separator = "";
  for (std::uint64_t Length : Tensor.Lengths) {
    Out = writeText(Out, Separator);
    Out = writeQuoted(Out, Text.substr(0, Length));
    Text.remove_prefix(Length);
    Separator = ",";
  }
  *Out++ = ']';
  return Out;
}

/// Returns true if an extent is 0. Such a tensor is written as `[]`, and its
/// shape is declared in "_types".
static bool isEmpty(const TensorView &Tensor) {
  return std::ranges::find(Tensor.Dims, 0) != Tensor.Dims.end();
}

static char *writeValue(char *Out, const TensorView &Tensor) {
  if (isEmpty(Tensor))
    return writeText(Out, "[]");
  switch (Tensor.Type) {
  case ElementType::Int8:
    return writeNumbers<std::int8_t>(Out, Tensor);
  case ElementType::Int16:
    return writeNumbers<std::int16_t>(Out, Tensor);
  case ElementType::Int32:
    return writeNumbers<std::int32_t>(Out, Tensor);
  case ElementType::Int64:
    return writeNumbers<std::int64_t>(Out, Tensor);
  case ElementType::UInt8:
    return writeNumbers<std::uint8_t>(Out, Tensor);
  case ElementType::UInt16:
    return writeNumbers<std::uint16_t>(Out, Tensor);
  case ElementType::UInt32:
    return writeNumbers<std::uint32_t>(Out, Tensor);
  case ElementType::UInt64:
    return writeNumbers<std::uint64_t>(Out, Tensor);
  case ElementType::Float:
    return writeNumbers<float>(Out, Tensor);
  case ElementType::Double:
    return writeNumbers<double>(Out, Tensor);
  case ElementType::Bool:
    return writeNumbers<bool>(Out, Tensor);
  case ElementType::String:
    return Tensor.Dims.isScalar() ? writeQuoted(Out, Tensor.text())
                                  : writeStrings(Out, Tensor);
  }
  return Out;
}

/// Returns an upper bound on the number of bytes that writeValue() writes. For
/// text, the function counts the characters that need an escape. The worst
/// case, six bytes for each byte of text, would be far too large.
static std::size_t maxValueSize(const TensorView &Tensor) {
  constexpr std::size_t BracketsAndComma = 3;
  if (Tensor.Type == ElementType::String) {
    // Add two quotes and a comma for each string, because quotedSize() treats
    // all strings as one text and therefore counts only one pair of quotes.
    return quotedSize(Tensor.text()) +
           Tensor.Lengths.size() * BracketsAndComma + BracketsAndComma;
  }
  std::size_t Arrays = 0;
  std::size_t Elements = 1;
  for (std::int64_t Extent : Tensor.Dims) {
    Arrays += Elements;
    Elements *= static_cast<std::size_t>(Extent);
  }
  if (isEmpty(Tensor))
    return BracketsAndComma;
  return Arrays * BracketsAndComma +
         Elements * (maxElementSize(Tensor.Type) + 1);
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

/// Returns true if the JSON value alone does not imply the type and the shape.
/// The result does not depend on the elements. Therefore, messages with the
/// same schema have the same declarations.
static bool needsType(const TensorView &Tensor) {
  switch (Tensor.Type) {
  case ElementType::Int64:
  case ElementType::Bool:
  case ElementType::String:
    return isEmpty(Tensor);
  default:
    return true;
  }
}

static void appendType(std::string &Out, const TensorView &Tensor) {
  bool WithShape = isEmpty(Tensor);
  if (WithShape)
    Out += "{\"type\":";
  appendQuoted(Out, elementTypeName(Tensor.Type));
  if (WithShape) {
    Out += ",\"shape\":";
    Out += Tensor.Dims.str();
    Out += '}';
  }
}

Error JSONSerDes::Writer::makePrelude(Span<const TensorView> Features) {
  Prelude.clear();
  for (const TensorView &Feature : Features)
    if (Feature.Name == JSONNames::Types)
      return featureError(ErrorCode::InvalidArgument, Feature.Name,
                          "JSON messages reserve this name");
  Prelude += '{';
  if (WithTypes && std::ranges::any_of(Features, needsType)) {
    appendQuoted(Prelude, JSONNames::Types);
    Prelude += ":{";
    const char *Separator = "";
    for (const TensorView &Feature : Features) {
      if (!needsType(Feature))
        continue;
      Prelude += Separator;
      appendQuoted(Prelude, Feature.Name);
      Prelude += ':';
      appendType(Prelude, Feature);
      Separator = ",";
    }
    Prelude += '}';
  }
  Keys.clear();
  KeyEnds.clear();
  for (const TensorView &Feature : Features) {
    if (Prelude.size() > 1 || !Keys.empty())
      Keys += ',';
    appendQuoted(Keys, Feature.Name);
    Keys += ':';
    KeyEnds.push_back(Keys.size());
  }
  return Error::success();
}

Expected<std::size_t>
JSONSerDes::Writer::prepare(Span<const TensorView> Features) {
  Expected<bool> IsNew = Last.update(Features);
  if (!IsNew) {
    Prelude.clear();
    return IsNew.takeError();
  }
  if (*IsNew || Prelude.empty())
    if (Error E = makePrelude(Features))
      return E;
  std::size_t Bound = Prelude.size() + Keys.size() + 1;
  for (const TensorView &Feature : Features) {
    if (Error E = checkElements(Feature, ErrorCode::InvalidArgument))
      return E;
    Bound += maxValueSize(Feature);
  }
  return Bound;
}

std::size_t JSONSerDes::Writer::write(Span<const TensorView> Features,
                                      char *Out) const {
  char *Next = writeText(Out, Prelude);
  std::size_t KeyStart = 0;
  for (std::size_t I = 0; I < Features.size(); ++I) {
    Next = writeText(
        Next, std::string_view(Keys).substr(KeyStart, KeyEnds[I] - KeyStart));
    Next = writeValue(Next, Features[I]);
    KeyStart = KeyEnds[I];
  }
  *Next++ = '}';
  return static_cast<std::size_t>(Next - Out);
}
