//===- Span.h - A view of contiguous elements -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Span<T>, a pointer and a length. The public headers use it instead
/// of std::span because they must stay C++17. Every contiguous container
/// converts to a Span, for example std::vector, std::array, std::span,
/// llvm::ArrayRef, llvm::SmallVector and C arrays.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SPAN_H
#define MLCOMPILERBRIDGE_SPAN_H

#include <cstddef>
#include <type_traits>
#include <utility>

namespace MLBridge {

/// A non-owning view of \c size() elements of type T. A Span must not outlive
/// its elements.
template <typename T> class Span {
  template <typename C>
  using DataOf = std::remove_pointer_t<decltype(std::declval<C &>().data())>;

public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  constexpr Span() = default;
  constexpr Span(T *Data, std::size_t Size) : Data(Data), Length(Size) {}
  template <std::size_t N>
  constexpr Span(T (&Array)[N]) : Data(Array), Length(N) {}

  /// Converts from any container that has data() and size() and elements of
  /// type T.
  template <typename C, typename = std::enable_if_t<
                            !std::is_same_v<std::decay_t<C>, Span> &&
                            std::is_convertible_v<DataOf<C> (*)[], T (*)[]>>>
  constexpr Span(C &&Container)
      : Data(Container.data()), Length(Container.size()) {}

  constexpr T *data() const { return Data; }
  constexpr std::size_t size() const { return Length; }
  constexpr bool empty() const { return Length == 0; }
  constexpr T *begin() const { return Data; }
  constexpr T *end() const { return Data + Length; }
  constexpr T &operator[](std::size_t I) const { return Data[I]; }
  constexpr T &front() const { return Data[0]; }
  constexpr T &back() const { return Data[Length - 1]; }

  /// Returns the \p Count elements that start at \p Offset. By default, returns
  /// all elements up to the end. \p Offset must be at most size().
  constexpr Span subspan(std::size_t Offset,
                         std::size_t Count = std::size_t(-1)) const {
    return {Data + Offset, Count == std::size_t(-1) ? Length - Offset : Count};
  }

private:
  T *Data = nullptr;
  std::size_t Length = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SPAN_H
