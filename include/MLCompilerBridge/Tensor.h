//===- Tensor.h - Named, typed, shaped values -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the basic value types: ElementType, Shape, TensorView (a view of a
/// named tensor) and TensorRef (a view of the caller's data with a shape but
/// without a name).
///
/// A tensor's data is dense, row-major and little-endian. The data of a list of
/// strings is their concatenated UTF-8 text, and a separate array holds the
/// lengths.
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
  /// One byte that is 0 or 1.
  Bool,
  /// UTF-8 text. A tensor of rank 0 is a string. A tensor of rank 1 is a list
  /// of strings.
  String,
};

/// Returns the size of one element in bytes. Returns 1 for String, because its
/// data is UTF-8 bytes.
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

/// Returns the type's name in the wire format and in error messages. The name
/// is "bool", "string" or the name in LLVM's TensorSpec, such as "float" or
/// "int64_t".
std::string_view elementTypeName(ElementType Type);
/// Returns the type called \p Name, or nullopt if there is no such type.
std::optional<ElementType> parseElementType(std::string_view Name);

/// Returns the ElementType for the C++ type T, or nullopt if a tensor cannot
/// have elements of type T.
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

/// True if a tensor can have elements of type T.
template <typename T>
inline constexpr bool IsElement =
    elementTypeOf<std::remove_cv_t<T>>().has_value();

/// The extents of a dense tensor, outermost first. A shape of rank 0 means a
/// scalar. If an extent is 0, the tensor is empty. A Shape never allocates
/// memory.
class Shape {
public:
  static constexpr std::size_t MaxRank = 8;

  Shape() = default;
  /// Creates a shape of at most MaxRank extents and drops all further extents.
  /// For extents from external input, use push(), which reports too many
  /// extents.
  Shape(std::initializer_list<std::int64_t> Extents)
      : Shape(Span<const std::int64_t>(Extents.begin(), Extents.size())) {}
  explicit Shape(Span<const std::int64_t> Extents) {
    for (std::int64_t E : Extents)
      if (!push(E))
        break;
  }

  /// Adds an innermost extent. Returns false if the rank is already MaxRank.
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

  /// Returns the product of the extents. Returns nullopt if an extent is
  /// negative or the product of the non-zero extents exceeds 2^60 - 1. Above
  /// this limit, the size in bytes could overflow, and NumPy refuses the shape.
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

  /// Returns the shape as text, such as "[3,4]", or "[]" for a scalar.
  std::string str() const;

private:
  std::array<std::int64_t, MaxRank> Extents{};
  std::size_t Rank = 0;
};

/// A view of a named tensor. A function that returns a TensorView documents how
/// long the view is valid.
struct TensorView {
  std::string_view Name;
  ElementType Type = ElementType::UInt8;
  Shape Dims;
  /// The NumBytes bytes of the elements. They are aligned to the element size
  /// unless a foreign peer sent them. as<T>() checks the alignment.
  const void *Data = nullptr;
  std::size_t NumBytes = 0;
  /// For a list of strings, the length of each string in bytes. Otherwise
  /// empty.
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
  /// Returns the text of a String tensor of rank 0.
  std::string_view text() const {
    return {static_cast<const char *>(Data), NumBytes};
  }
  /// Returns a view of the elements. Returns nullopt if their type is not T or
  /// they are not aligned for T.
  template <typename T> std::optional<Span<const T>> as() const {
    if (elementTypeOf<T>() != Type ||
        reinterpret_cast<std::uintptr_t>(Data) % alignof(T) != 0)
      return std::nullopt;
    return Span<const T>(static_cast<const T *>(Data), NumBytes / sizeof(T));
  }
  /// Returns the type and shape as text, such as "float[3,4]".
  std::string typeStr() const;
};

/// A view of the caller's elements with a shape, such as `TensorRef(Matrix,
/// {Rows, Columns})`. A FeatureSet borrows the elements.
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
