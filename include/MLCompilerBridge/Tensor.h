//===- Tensor.h - Named, typed, shaped values -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The basic value types: ElementType, Shape, TensorView (a view of a named
/// tensor) and TensorRef (a shaped view of the caller's data, without a name).
///
/// Data is dense, row-major and little-endian. A list of strings is stored as
/// the concatenated UTF-8 bytes, with the lengths in a separate array.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TENSOR_H
#define MLCOMPILERBRIDGE_TENSOR_H

#include "MLCompilerBridge/Span.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace MLBridge {

/// The type of a tensor's elements.
enum class ElementType : std::uint8_t {
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float,
  Double,
  /// One byte, 0 or 1.
  Bool,
  /// UTF-8. Rank 0 is a string, rank 1 a list of strings.
  String,
};

/// The size of one element in bytes; 1 for Bool and for String (UTF-8 bytes).
constexpr std::size_t elementSize(ElementType Type) {
  switch (Type) {
  case ElementType::Int16:
  case ElementType::UInt16:
    return 2;
  case ElementType::Int32:
  case ElementType::UInt32:
  case ElementType::Float:
    return 4;
  case ElementType::Int64:
  case ElementType::UInt64:
  case ElementType::Double:
    return 8;
  default:
    return 1;
  }
}

/// The type's name on the wire and in error messages: LLVM's TensorSpec
/// spelling
/// ("float", "int64_t"), or "bool" or "string".
std::string_view elementTypeName(ElementType Type);
/// The type called \p Name, or nullopt.
std::optional<ElementType> parseElementType(std::string_view Name);

/// The ElementType of the C++ type T, or nullopt.
template <typename T> constexpr std::optional<ElementType> elementTypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return ElementType::Bool;
  else if constexpr (std::is_same_v<T, float>)
    return ElementType::Float;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::Double;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<ElementType>((std::is_signed_v<T>
                                         ? int(ElementType::Int8)
                                         : int(ElementType::UInt8)) +
                                    (sizeof(T) == 1   ? 0
                                     : sizeof(T) == 2 ? 1
                                     : sizeof(T) == 4 ? 2
                                                      : 3));
  else
    return std::nullopt;
}

/// Whether T can be the type of a tensor's elements.
template <typename T>
inline constexpr bool IsElement =
    elementTypeOf<std::remove_cv_t<T>>().has_value();

/// The extents of a dense tensor, outermost first. Rank 0 is a scalar; an
/// extent of 0 makes an empty tensor. Never allocates.
class Shape {
public:
  static constexpr std::size_t MaxRank = 8;

  Shape() = default;
  /// Takes at most MaxRank extents and drops the rest; use push() for extents
  /// from external input.
  Shape(std::initializer_list<std::int64_t> Extents)
      : Shape(Span<const std::int64_t>(Extents.begin(), Extents.size())) {}
  explicit Shape(Span<const std::int64_t> Extents) {
    for (std::int64_t E : Extents)
      if (!push(E))
        break;
  }

  /// Adds an innermost extent; false if the rank is already MaxRank.
  bool push(std::int64_t Extent) {
    if (Rank == MaxRank)
      return false;
    Extents[Rank++] = Extent;
    return true;
  }

  std::size_t rank() const { return Rank; }
  bool isScalar() const { return Rank == 0; }
  std::int64_t operator[](std::size_t I) const { return Extents[I]; }
  const std::int64_t *begin() const { return Extents.data(); }
  const std::int64_t *end() const { return Extents.data() + Rank; }

  /// The product of the extents. nullopt if an extent is negative or the
  /// product of the non-zero extents exceeds 2^60 - 1: beyond that, the size in
  /// bytes could overflow, and NumPy refuses the shape.
  std::optional<std::size_t> numElements() const;

  friend bool operator==(const Shape &A, const Shape &B) {
    if (A.Rank != B.Rank)
      return false;
    for (std::size_t I = 0; I < A.Rank; ++I)
      if (A.Extents[I] != B.Extents[I])
        return false;
    return true;
  }
  friend bool operator!=(const Shape &A, const Shape &B) { return !(A == B); }

  /// "[3,4]"; "[]" for a scalar.
  std::string str() const;

private:
  std::array<std::int64_t, MaxRank> Extents{};
  std::size_t Rank = 0;
};

/// A view of a named tensor. Functions that return one document its lifetime.
struct TensorView {
  std::string_view Name;
  ElementType Type = ElementType::UInt8;
  Shape Dims;
  /// NumBytes bytes; aligned to the element size unless a foreign peer sent
  /// them (as<T>() checks).
  const void *Data = nullptr;
  std::size_t NumBytes = 0;
  /// The size of each string in a list of strings, in bytes; otherwise empty.
  Span<const std::uint64_t> Lengths;

  Span<const std::byte> bytes() const {
    return {static_cast<const std::byte *>(Data), NumBytes};
  }
  std::size_t numElements() const {
    return Type == ElementType::String ? (Dims.isScalar() ? 1 : Lengths.size())
                                       : NumBytes / elementSize(Type);
  }
  bool isStringList() const {
    return Type == ElementType::String && !Dims.isScalar();
  }
  /// The text of a rank-0 String tensor.
  std::string_view text() const {
    return {static_cast<const char *>(Data), NumBytes};
  }
  /// The elements in place; nullopt unless they have type T and its alignment.
  template <typename T> std::optional<Span<const T>> as() const {
    if (elementTypeOf<T>() != Type ||
        reinterpret_cast<std::uintptr_t>(Data) % alignof(T) != 0)
      return std::nullopt;
    return Span<const T>(static_cast<const T *>(Data), NumBytes / sizeof(T));
  }
  /// "float[3,4]".
  std::string typeStr() const;
};

/// The caller's elements with a shape: `TensorRef(Matrix, {Rows, Columns})`.
/// The elements are borrowed: see FeatureSet.
template <typename T> struct TensorRef {
  TensorRef(Span<const T> Elements, Shape Dims)
      : Elements(Elements), Dims(Dims) {}
  Span<const T> Elements;
  Shape Dims;
};
template <typename C>
TensorRef(const C &, Shape) -> TensorRef<std::remove_cv_t<
    std::remove_pointer_t<decltype(std::declval<const C &>().data())>>>;

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TENSOR_H
