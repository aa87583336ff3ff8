//===- JSONElements.h - JSON scalars to elements ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The readers of a tensor's elements, one for each kind of type. Each has
///   - take(): the fast path; reads a value of the expected kind, and returns
///     false if the kind differs or the value is out of range;
///   - takeOther(): reads unusual spellings of an element, such as "NaN", and
///     returns an error for anything else;
///   - finish(): sets the type, and checks the shape, after the last element.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONELEMENTS_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONELEMENTS_H

#include "SerDes/JSONValue.h"

#include <cfloat>
#include <cmath>

namespace MLBridge::serdes {

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// The kind of a JSON value, which its first character determines.
enum class JSONKind { Number, Bool, String, Array, Object, Null, None };

JSONKind kindOf(std::string_view Token);
/// The kind in words: "a number", "an array".
std::string_view kindName(JSONKind Kind);
/// Whether \p Token, without trailing white space, is a JSON number.
bool isNumber(std::string_view Token);
/// Whether the number \p Token has neither a fraction nor an exponent.
bool isInteger(std::string_view Token);
/// Parses "NaN" and the infinities; nullopt for other texts.
std::optional<double> parseNonFinite(std::string_view Text);

/// The error for a value that is not \p Expected: a SchemaMismatch, or
/// Malformed if the value cannot be an element of any type.
Error notA(std::string_view Expected, std::string_view Token);

/// The slow path of toFloat(), for ambiguous doubles.
std::optional<float> parseFloat(std::string_view Token, double Nearest);

/// The float nearest to the number in \p Token, whose nearest double is \p
/// Nearest; nullopt if the number is too large. Rounding the double is not
/// always correct: it may lie halfway between two floats when the number itself
/// does not.
inline std::optional<float> toFloat(double Nearest, std::string_view Token) {
  // A double's mantissa has 29 bits more than a float's.
  constexpr std::uint64_t ExtraBits = (std::uint64_t(1) << 29) - 1;
  constexpr std::uint64_t Halfway = std::uint64_t(1) << 28;
  // Halfway between the largest float and the next value, which would be 2^128.
  constexpr double Overflow = 0x1.ffffffp127;
  double Magnitude = std::fabs(Nearest);
  // Subnormal floats have fewer bits, so their halfway points differ.
  bool IsSubnormal = Magnitude < double(FLT_MIN) && Magnitude != 0;
  if ((std::bit_cast<std::uint64_t>(Nearest) & ExtraBits) == Halfway ||
      IsSubnormal)
    return parseFloat(Token, Nearest);
  if (Magnitude > Overflow)
    return std::nullopt;
  return static_cast<float>(Nearest);
}

//===----------------------------------------------------------------------===//
// Elements of a known type
//===----------------------------------------------------------------------===//

/// float or double.
template <typename T> class FloatElements {
public:
  FloatElements(ElementStore &Store, bool ExactIntegers)
      : Store(Store), ExactIntegers(ExactIntegers) {}

  bool take(ondemand::value &Value) {
    double Nearest;
    if (Value.get_double().get(Nearest))
      return false;
    T Element;
    if constexpr (std::is_same_v<T, float>) {
      std::optional<float> Rounded = toFloat(Nearest, Value.raw_json_token());
      if (!Rounded)
        return false;
      Element = *Rounded;
    } else {
      Element = Nearest;
    }
    if (ExactIntegers && !isExact(Element, Value.raw_json_token()))
      return false;
    Store.push(Element);
    return true;
  }

  Error takeOther(ondemand::value &Value) {
    std::string_view Token = Value.raw_json_token();
    if (kindOf(Token) != JSONKind::String)
      return notA(typeName(), Token);
    std::string_view Text;
    if (simdjson::error_code E = Value.get_string().get(Text))
      return jsonError(E, "a string");
    std::optional<double> Number = parseNonFinite(Text);
    if (!Number)
      return notA(typeName(), Token);
    Store.push(static_cast<T>(*Number));
    return Error::success();
  }

  Error finish(StoredTensor &Out) const {
    Out.Type = *elementTypeOf<T>();
    return Error::success();
  }

private:
  static std::string_view typeName() {
    return elementTypeName(*elementTypeOf<T>());
  }

  /// False if \p Token is an integer that differs from \p Element. True for
  /// integers beyond 64 bits, which the writer must have meant as
  /// floating-point numbers.
  static bool isExact(T Element, std::string_view Token);

  ElementStore &Store;
  bool ExactIntegers;
};

/// int8_t to uint64_t.
class IntegerElements {
public:
  IntegerElements(ElementStore &Store, ElementType Type);

  bool take(ondemand::value &Value) {
    if (IsSigned) {
      std::int64_t Element;
      if (Value.get_int64().get(Element) || Element < Min || Element > Max)
        return false;
      Store.push(&Element, Size);
    } else {
      std::uint64_t Element;
      if (Value.get_uint64().get(Element) || Element > UnsignedMax)
        return false;
      Store.push(&Element, Size);
    }
    return true;
  }

  Error takeOther(ondemand::value &Value) {
    return notA(elementTypeName(Type), Value.raw_json_token());
  }

  Error finish(StoredTensor &Out) const {
    Out.Type = Type;
    return Error::success();
  }

private:
  ElementStore &Store;
  ElementType Type;
  std::size_t Size;
  bool IsSigned;
  std::int64_t Min = 0;
  std::int64_t Max = 0;
  std::uint64_t UnsignedMax = 0;
};

class BoolElements {
public:
  explicit BoolElements(ElementStore &Store) : Store(Store) {}

  bool take(ondemand::value &Value) {
    bool Element;
    if (Value.get_bool().get(Element))
      return false;
    Store.push(std::uint8_t(Element));
    return true;
  }

  Error takeOther(ondemand::value &Value) {
    return notA(elementTypeName(ElementType::Bool), Value.raw_json_token());
  }

  Error finish(StoredTensor &Out) const {
    Out.Type = ElementType::Bool;
    return Error::success();
  }

private:
  ElementStore &Store;
};

/// A string, or a list of strings.
class StringElements {
public:
  explicit StringElements(ElementStore &Store) : Store(Store) {}

  bool take(ondemand::value &Value) {
    std::string_view Text;
    if (Value.get_string().get(Text))
      return false;
    Store.push(Text.data(), Text.size());
    Store.pushLength(Text.size());
    return true;
  }

  Error takeOther(ondemand::value &Value);
  Error finish(StoredTensor &Out) const;

private:
  ElementStore &Store;
};

//===----------------------------------------------------------------------===//
// Elements of an inferred type
//===----------------------------------------------------------------------===//

/// Elements of an undeclared type: bools, strings, or numbers. Numbers are
/// int64_t if all fit, otherwise uint64_t if all fit, otherwise double. If one
/// number has a fraction or an exponent or is not finite, integers round to the
/// nearest double; if all are integers, each must be exactly a double.
class NaturalElements {
public:
  NaturalElements(ElementStore &Store)
      : Store(Store), Start(Store.size()), FirstLength(Store.numLengths()) {}

  bool take(ondemand::value &Value);
  Error takeOther(ondemand::value &Value);
  Error finish(StoredTensor &Out);

private:
  enum class Kind {
    Nothing,
    Bools,
    Strings,
    Int64s,
    UInt64s,
    /// Integers that do not fit one 64-bit type, stored as doubles.
    OddIntegers,
    Doubles,
  };

  Error takeNumber(ondemand::value &Value, std::string_view Token);
  Error takeInteger(ondemand::value &Value, std::string_view Token);
  Error takeString(ondemand::value &Value, std::string_view Token);
  /// Converts the numbers read so far to doubles.
  template <typename T> void widen();
  void widenTo(Kind Wider);
  /// Converts the strings read so far to doubles if all are "NaN" or
  /// infinities; false otherwise.
  bool becomeNumbers();
  Error mixed(std::string_view Token) const;

  ElementStore &Store;
  std::size_t Start;
  std::size_t FirstLength;
  Kind Have = Kind::Nothing;
  bool HaveNegative = false;
  /// Whether an integer was rounded to a double.
  bool HaveRounded = false;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONELEMENTS_H
