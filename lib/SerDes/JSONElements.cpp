//===- JSONElements.cpp - JSON scalars to elements ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The slow paths of the classes that read elements.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONElements.h"

#include "SerDes/JSONNames.h"
#include "SerDes/Schema.h"

#include <charconv>
#include <limits>

namespace MLBridge::serdes {

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool isDigit(char C) { return C >= '0' && C <= '9'; }

/// Returns \p Token without trailing white space. simdjson's tokens include the
/// white space up to the next token.
static std::string_view trimmed(std::string_view Token) {
  return Token.substr(0, Token.find_last_not_of(" \t\r\n") + 1);
}

JSONKind kindOf(std::string_view Token) {
  switch (Token.empty() ? '\0' : Token.front()) {
  case 't':
  case 'f':
    return JSONKind::Bool;
  case '"':
    return JSONKind::String;
  case '[':
    return JSONKind::Array;
  case '{':
    return JSONKind::Object;
  case 'n':
    return JSONKind::Null;
  case '-':
    return JSONKind::Number;
  default:
    return !Token.empty() && isDigit(Token.front()) ? JSONKind::Number
                                                    : JSONKind::None;
  }
}

std::string_view kindName(JSONKind Kind) {
  switch (Kind) {
  case JSONKind::Number:
    return "a number";
  case JSONKind::Bool:
    return "true or false";
  case JSONKind::String:
    return "a string";
  case JSONKind::Array:
    return "an array";
  case JSONKind::Object:
    return "an object";
  case JSONKind::Null:
    return "null";
  case JSONKind::None:
    break;
  }
  return "no value";
}

bool isNumber(std::string_view Token) {
  std::string_view Rest = trimmed(Token);
  auto Skip = [&](std::string_view OneOf) {
    bool Found = !Rest.empty() && OneOf.find(Rest.front()) != OneOf.npos;
    Rest.remove_prefix(Found);
    return Found;
  };
  auto SkipDigits = [&] {
    std::size_t Digits = 0;
    while (Digits < Rest.size() && isDigit(Rest[Digits]))
      ++Digits;
    Rest.remove_prefix(Digits);
    return Digits > 0;
  };
  Skip("-");
  // Read a leading zero alone, because JSON allows no digit after it.
  if (!Skip("0") && !SkipDigits())
    return false;
  if (Skip(".") && !SkipDigits())
    return false;
  if (Skip("eE")) {
    Skip("+-");
    if (!SkipDigits())
      return false;
  }
  return Rest.empty();
}

bool isInteger(std::string_view Token) {
  return Token.find_first_of(".eE") == Token.npos;
}

std::optional<double> parseNonFinite(std::string_view Text) {
  using Limits = std::numeric_limits<double>;
  if (Text == JSONNames::NaN)
    return Limits::quiet_NaN();
  if (Text == JSONNames::Infinity)
    return Limits::infinity();
  if (Text == JSONNames::NegativeInfinity)
    return -Limits::infinity();
  return std::nullopt;
}

Error notA(std::string_view Expected, std::string_view Token) {
  JSONKind Kind = kindOf(Token);
  std::string What = "expected " + std::string(Expected) + ", found ";
  switch (Kind) {
  case JSONKind::Number:
    if (!isNumber(Token))
      return {ErrorCode::Malformed,
              quoted(trimmed(Token)) + " is not a number"};
    return {ErrorCode::SchemaMismatch, What += trimmed(Token).substr(0, 40)};
  case JSONKind::Bool:
    if (trimmed(Token) != "true" && trimmed(Token) != "false")
      return {ErrorCode::Malformed,
              quoted(trimmed(Token)) + " is neither true nor false"};
    [[fallthrough]];
  case JSONKind::String:
  case JSONKind::Array:
    return {ErrorCode::SchemaMismatch, What += kindName(Kind)};
  case JSONKind::Object:
  case JSONKind::Null:
  case JSONKind::None:
    break;
  }
  return {ErrorCode::Malformed, What += kindName(Kind)};
}

std::optional<float> parseFloat(std::string_view Token, double Nearest) {
  float Value = 0;
  std::from_chars_result Result =
      std::from_chars(Token.data(), Token.data() + Token.size(), Value);
  if (Result.ec == std::errc())
    return Value;
  // A number that is too small for a float rounds to 0.
  if (std::fabs(Nearest) < 1)
    return static_cast<float>(std::copysign(0.0, Nearest));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Elements of a known type
//===----------------------------------------------------------------------===//

/// Returns true if T can represent an integer of this magnitude exactly.
template <typename T> static bool isExactly(std::uint64_t Magnitude) {
  return Magnitude == 0 ||
         std::bit_width(Magnitude) - std::countr_zero(Magnitude) <=
             std::numeric_limits<T>::digits;
}

template <typename T>
bool FloatElements<T>::isExact(T Element, std::string_view Token) {
  // T represents every integer smaller than Limit exactly. Limit + 1 rounds to
  // Limit, so Limit itself needs a check.
  constexpr T Limit = T(std::uint64_t(1) << std::numeric_limits<T>::digits);
  if ((Element > -Limit && Element < Limit) || !isInteger(Token))
    return true;
  Token.remove_prefix(Token.starts_with('-'));
  std::uint64_t Magnitude = 0;
  if (std::from_chars(Token.data(), Token.data() + Token.size(), Magnitude)
          .ec != std::errc())
    return true;
  return isExactly<T>(Magnitude);
}

template class FloatElements<float>;
template class FloatElements<double>;

IntegerElements::IntegerElements(ElementStore &Store, ElementType Type)
    : Store(Store), Type(Type), Size(elementSize(Type)),
      IsSigned(Type <= ElementType::Int64) {
  unsigned SpareBits = 64 - 8 * static_cast<unsigned>(Size);
  Min = std::numeric_limits<std::int64_t>::min() >> SpareBits;
  Max = std::numeric_limits<std::int64_t>::max() >> SpareBits;
  UnsignedMax = std::numeric_limits<std::uint64_t>::max() >> SpareBits;
}

Error StringElements::takeOther(ondemand::value &Value) {
  std::string_view Text;
  simdjson::error_code E = Value.get_string().get(Text);
  return E && E != simdjson::INCORRECT_TYPE
             ? jsonError(E, "a string")
             : notA(elementTypeName(ElementType::String),
                    Value.raw_json_token());
}

Error StringElements::finish(StoredTensor &Out) const {
  Out.Type = ElementType::String;
  if (Out.Dims.rank() > 1)
    return {ErrorCode::SchemaMismatch,
            "expected a string or a list of strings, found shape " +
                Out.Dims.str()};
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Elements of an inferred type
//===----------------------------------------------------------------------===//

bool NaturalElements::take(ondemand::value &Value) {
  switch (Have) {
  case Kind::Nothing:
  case Kind::OddIntegers:
    return false;
  case Kind::Bools:
    return BoolElements(Store).take(Value);
  case Kind::Strings:
    return StringElements(Store).take(Value);
  case Kind::Int64s: {
    std::int64_t Element;
    if (Value.get_int64().get(Element))
      return false;
    HaveNegative |= Element < 0;
    Store.push(Element);
    return true;
  }
  case Kind::UInt64s: {
    std::uint64_t Element;
    if (Value.get_uint64().get(Element))
      return false;
    Store.push(Element);
    return true;
  }
  case Kind::Doubles: {
    double Element;
    if (Value.get_double().get(Element))
      return false;
    Store.push(Element);
    return true;
  }
  }
  return false;
}

Error NaturalElements::takeOther(ondemand::value &Value) {
  std::string_view Token = Value.raw_json_token();
  switch (kindOf(Token)) {
  case JSONKind::Number:
    return takeNumber(Value, Token);
  case JSONKind::String:
    return takeString(Value, Token);
  case JSONKind::Bool:
    if (Have != Kind::Nothing && Have != Kind::Bools)
      return mixed(Token);
    if (!BoolElements(Store).take(Value))
      return notA("true or false", Token);
    Have = Kind::Bools;
    return Error::success();
  default:
    return notA("a number, a bool, a string or an array", Token);
  }
}

Error NaturalElements::takeNumber(ondemand::value &Value,
                                  std::string_view Token) {
  if (!isNumber(Token))
    return notA("a number", Token);
  if (Have == Kind::Bools || (Have == Kind::Strings && !becomeNumbers()))
    return mixed(Token);
  if (isInteger(Token))
    return takeInteger(Value, Token);
  widenTo(Kind::Doubles);
  if (!take(Value))
    return notA(elementTypeName(ElementType::Double), Token);
  return Error::success();
}

static bool isDouble(std::uint64_t Integer) {
  return isExactly<double>(Integer);
}

static bool isDouble(std::int64_t Integer) {
  auto Bits = static_cast<std::uint64_t>(Integer);
  return isExactly<double>(Integer < 0 ? -Bits : Bits);
}

/// Returns true if the integer in \p Token equals \p Nearest, the double
/// nearest to it.
static bool isDouble(std::string_view Token, double Nearest) {
  char Digits[std::numeric_limits<double>::max_exponent10 + 3];
  std::to_chars_result Exact =
      std::to_chars(std::begin(Digits), std::end(Digits), Nearest,
                    std::chars_format::fixed, /*precision=*/0);
  return Exact.ec == std::errc() &&
         trimmed(Token) == std::string_view(Digits, Exact.ptr - Digits);
}

Error NaturalElements::takeInteger(ondemand::value &Value,
                                   std::string_view Token) {
  std::int64_t Signed;
  bool IsInt64 = !Value.get_int64().get(Signed);
  if (IsInt64 && Have == Kind::Nothing) {
    Have = Kind::Int64s;
    HaveNegative = Signed < 0;
    Store.push(Signed);
    return Error::success();
  }
  std::uint64_t Unsigned;
  bool MayBeUInt64 = Have == Kind::Nothing || Have == Kind::UInt64s ||
                     (Have == Kind::Int64s && !HaveNegative);
  if (!IsInt64 && MayBeUInt64 && !Value.get_uint64().get(Unsigned)) {
    // The existing int64_t elements are not negative. Therefore, they have the
    // same bytes as uint64_t elements and need no conversion.
    Have = Kind::UInt64s;
    Store.push(Unsigned);
    return Error::success();
  }
  if (Have != Kind::Doubles)
    widenTo(Kind::OddIntegers);
  if (IsInt64) {
    HaveRounded |= !isDouble(Signed);
    Store.push(static_cast<double>(Signed));
    return Error::success();
  }
  double Nearest;
  if (Value.get_double().get(Nearest))
    return notA(elementTypeName(ElementType::Double), Token);
  HaveRounded |= !isDouble(Token, Nearest);
  Store.push(Nearest);
  return Error::success();
}

Error NaturalElements::takeString(ondemand::value &Value,
                                  std::string_view Token) {
  if (Have == Kind::Bools)
    return mixed(Token);
  std::string_view Text;
  if (simdjson::error_code E = Value.get_string().get(Text))
    return jsonError(E, "a string");
  if (Have == Kind::Nothing || Have == Kind::Strings) {
    Have = Kind::Strings;
    Store.push(Text.data(), Text.size());
    Store.pushLength(Text.size());
    return Error::success();
  }
  std::optional<double> Number = parseNonFinite(Text);
  if (!Number)
    return mixed(Token);
  widenTo(Kind::Doubles);
  Store.push(*Number);
  return Error::success();
}

template <typename T> void NaturalElements::widen() {
  static_assert(sizeof(T) == sizeof(double));
  for (std::size_t At = Start; At < Store.size(); At += sizeof(T)) {
    T Integer;
    std::memcpy(&Integer, Store.at(At), sizeof(T));
    HaveRounded |= !isDouble(Integer);
    auto Element = static_cast<double>(Integer);
    std::memcpy(Store.at(At), &Element, sizeof(T));
  }
}

void NaturalElements::widenTo(Kind Wider) {
  if (Have == Kind::Int64s)
    widen<std::int64_t>();
  else if (Have == Kind::UInt64s)
    widen<std::uint64_t>();
  Have = Wider;
}

bool NaturalElements::becomeNumbers() {
  std::size_t Count = Store.numLengths() - FirstLength;
  std::size_t Text = Start;
  std::size_t Numbers = Store.align(ElementStore::Alignment);
  for (std::uint64_t Length : Store.lengths(FirstLength, Count)) {
    std::optional<double> Number = parseNonFinite(
        {reinterpret_cast<const char *>(Store.at(Text)), Length});
    if (!Number)
      return false;
    Store.push(*Number);
    Text += Length;
  }
  Start = Numbers;
  Store.truncateLengths(FirstLength);
  Have = Kind::Doubles;
  return true;
}

Error NaturalElements::mixed(std::string_view Token) const {
  std::string_view Others = Have == Kind::Bools     ? "bools"
                            : Have == Kind::Strings ? "strings"
                                                    : "numbers";
  return {ErrorCode::Malformed, "found " +
                                    std::string(kindName(kindOf(Token))) +
                                    " among " + std::string(Others)};
}

Error NaturalElements::finish(StoredTensor &Out) {
  if (Have == Kind::Strings && Out.Dims.rank() > 1 && !becomeNumbers())
    return {ErrorCode::Malformed,
            "a list of strings has rank 1, found shape " + Out.Dims.str()};
  Out.Offset = Start;
  switch (Have) {
  case Kind::Nothing:
  case Kind::Int64s:
    Out.Type = ElementType::Int64;
    break;
  case Kind::UInt64s:
    Out.Type = ElementType::UInt64;
    break;
  case Kind::OddIntegers:
    if (HaveRounded)
      return {ErrorCode::SchemaMismatch,
              "expected integers of one 64-bit type, found larger ones"};
    [[fallthrough]];
  case Kind::Doubles:
    Out.Type = ElementType::Double;
    break;
  case Kind::Bools:
    Out.Type = ElementType::Bool;
    break;
  case Kind::Strings:
    Out.Type = ElementType::String;
    break;
  }
  return Error::success();
}

} // namespace MLBridge::serdes
