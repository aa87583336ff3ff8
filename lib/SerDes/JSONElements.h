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
///   - take(): reads a value of the expected kind and nothing else, fast;
///     false when it is another, or out of range;
///   - takeOther(): reads the unusual spellings of an element, such as "NaN",
///     and says what is wrong with everything else;
///   - finish(): the type and shape, once all elements have been read.
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

/// The kind of a JSON value, which its first character tells.
enum class JSONKind { Number, Bool, String, Array, Object, Null, None };

JSONKind kindOf(std::string_view Token);
/// "a number", "an array".
std::string_view kindName(JSONKind Kind);
/// Whether \p Token, up to white space, is a number by JSON's grammar.
bool isNumber(std::string_view Token);
/// Whether \p Token, which is a number, has no fraction and no exponent.
bool isInteger(std::string_view Token);
/// The number that \p Text stands for, if it is "NaN" or an infinity.
std::optional<double> parseNonFinite(std::string_view Text);

/// An error for a value that is no \p Expected: a SchemaMismatch, or Malformed
/// if it can be no element at all.
Error notA(std::string_view Expected, std::string_view Token);

/// toFloat() where the double does not say enough.
std::optional<float> parseFloat(std::string_view Token, double Nearest);

/// The float nearest to the number in \p Token, of which \p Nearest is the
/// nearest double; nothing if that number is too large. Rounding the double is
/// not always enough: it may lie halfway between two floats where the number
/// itself does not.
inline std::optional<float> toFloat(double Nearest, std::string_view Token) {
  // A double has 29 bits of mantissa more than a float.
  constexpr std::uint64_t ExtraBits = (std::uint64_t(1) << 29) - 1;
  constexpr std::uint64_t Halfway = std::uint64_t(1) << 28;
  // Halfway between the largest float and the next one, if there were one.
  constexpr double Overflow = 0x1.ffffffp127;
  double Magnitude = std::fabs(Nearest);
  // Subnormal floats have fewer bits, so halfway is elsewhere for each.
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

  /// Whether \p Element is the integer in \p Token, if it is one. One that no
  /// integer type can hold was a floating-point number where it was written.
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

/// A string, or the strings of a list.
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
// Elements of the type that they suggest
//===----------------------------------------------------------------------===//

/// What a value is that nobody has said the type of: bools, strings, int64
/// numbers if all are, else uint64 if all are, else doubles: the nearest if one
/// of them has a fraction or an exponent or is not finite, so that doubles must
/// have been meant, or else if all are doubles exactly.
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
    /// Integers that no integer type can hold all of, kept as doubles.
    OddIntegers,
    Doubles,
  };

  Error takeNumber(ondemand::value &Value, std::string_view Token);
  Error takeInteger(ondemand::value &Value, std::string_view Token);
  Error takeString(ondemand::value &Value, std::string_view Token);
  /// Makes doubles of the numbers read so far.
  template <typename T> void widen();
  void widenTo(Kind Wider);
  /// Makes doubles of the strings read so far, if they are all "NaN" or so.
  bool becomeNumbers();
  Error mixed(std::string_view Token) const;

  ElementStore &Store;
  std::size_t Start;
  std::size_t FirstLength;
  Kind Have = Kind::Nothing;
  bool HaveNegative = false;
  /// Whether an integer was not exactly a double.
  bool HaveRounded = false;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONELEMENTS_H
