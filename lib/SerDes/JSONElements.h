//===- JSONElements.h - JSON scalars to elements ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The classes that read a tensor's elements. There is one class for each kind
/// of type. Each class has three functions:
/// - take() is the fast path. It reads a value of the expected kind. It returns
///   false if the value has another kind or is out of range.
/// - takeOther() reads unusual spellings of an element, for example "NaN". It
///   returns an error for all other values.
/// - finish() is called after the last element. It sets the type and checks the
///   shape.
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

/// The kind of a JSON value. The first character of a value determines its
/// kind.
enum class JSONKind { Number, Bool, String, Array, Object, Null, None };

JSONKind kindOf(std::string_view Token);
/// Returns the kind in words, for example "a number" or "an array".
std::string_view kindName(JSONKind Kind);
/// Returns true if \p Token is a JSON number. White space may follow the
/// number.
bool isNumber(std::string_view Token);
/// Returns true if the number \p Token has neither a fraction nor an exponent.
bool isInteger(std::string_view Token);
/// Parses "NaN", "Infinity" and "-Infinity". Returns nullopt for other texts.
std::optional<double> parseNonFinite(std::string_view Text);

/// Returns the error for a value that is not \p Expected. The error is
/// Malformed if the value cannot be an element of any type. Otherwise, it is a
/// SchemaMismatch.
Error notA(std::string_view Expected, std::string_view Token);

/// The slow path of toFloat(), which parses \p Token again as a float.
std::optional<float> parseFloat(std::string_view Token, double Nearest);

/// Returns the float nearest to the number in \p Token, or nullopt if the
/// number is too large. \p Nearest is the double nearest to the number.
/// Rounding the double to a float is not always correct. The double may lie
/// halfway between two floats although the number itself does not.
inline std::optional<float> toFloat(double Nearest, std::string_view Token) {
  // A double's mantissa has 29 bits more than a float's mantissa.
  constexpr std::uint64_t ExtraBits = (std::uint64_t(1) << 29) - 1;
  constexpr std::uint64_t Halfway = std::uint64_t(1) << 28;
  // This value lies halfway between the largest float and 2^128.
  constexpr double Overflow = 0x1.ffffffp127;
  double Magnitude = std::fabs(Nearest);
  // Subnormal floats have fewer bits, so their halfway points differ.
  // Therefore, parse small numbers again.
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

/// Elements of type float or double.
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

  /// Returns false if \p Token is an integer that differs from \p Element.
  /// Returns true for integers of more than 64 bits, because their writer must
  /// have meant floating-point numbers.
  static bool isExact(T Element, std::string_view Token);

  ElementStore &Store;
  bool ExactIntegers;
};

/// Elements of an integer type, from int8_t to uint64_t.
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

/// The elements of a list of strings, or a single string.
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

/// Elements of an undeclared type. They are bools, strings or numbers. Numbers
/// get the first of these types that fits all of them: int64_t, uint64_t,
/// double.
///
/// For the type double, integers are rounded to the nearest double if at least
/// one number has a fraction, has an exponent or is not finite. If all numbers
/// are integers, each integer must be representable as a double without
/// rounding.
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
    /// Integers that fit no common 64-bit type. They are stored as doubles.
    OddIntegers,
    Doubles,
  };

  Error takeNumber(ondemand::value &Value, std::string_view Token);
  Error takeInteger(ondemand::value &Value, std::string_view Token);
  Error takeString(ondemand::value &Value, std::string_view Token);
  /// Converts to doubles all numbers that have been read.
  template <typename T> void widen();
  void widenTo(Kind Wider);
  /// Converts to doubles all strings that have been read. Returns false if one
  /// of them is neither "NaN" nor an infinity.
  bool becomeNumbers();
  Error mixed(std::string_view Token) const;

  ElementStore &Store;
  std::size_t Start;
  std::size_t FirstLength;
  Kind Have = Kind::Nothing;
  bool HaveNegative = false;
  /// True if an integer was rounded to a double.
  bool HaveRounded = false;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONELEMENTS_H
