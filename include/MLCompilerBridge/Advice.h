//===- Advice.h - What a model answers --------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Advice: the named tensors of one answer, and the conversions from a tensor
/// to the C++ type that a pass wants.
///
/// **Conversions.** A conversion is made when it keeps the value: an int64 5
/// is a fine int, 300 is no int8_t, 1.0 is a fine int, 0.5 is not. The one
/// rounding allowed is from double to float. Everything else is a
/// SchemaMismatch, never a made-up value.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_ADVICE_H
#define MLCOMPILERBRIDGE_ADVICE_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <string>
#include <vector>

namespace MLBridge {

/// What a caller of evaluate<T> expects, so that runners and peers that cannot
/// tell from the bytes alone (raw replies, JSON numbers) can.
struct AdviceSpec {
  enum class Form : std::uint8_t {
    Any,    ///< T is Advice: whatever the model answers.
    Scalar, ///< One element.
    List,   ///< Any number of elements.
  };
  Form Wanted = Form::Any;
  /// Unless the form is Any.
  ElementType Type = ElementType::UInt8;

  static AdviceSpec any() { return {}; }
  template <typename T> static constexpr AdviceSpec of();
};

/// The answer to one request: one tensor or several by name, as views that
/// are valid until the runner that gave them is asked again. \see MLModelRunner
class Advice {
public:
  Advice() = default;
  explicit Advice(Span<const TensorView> Tensors) : Tensors(Tensors) {}

  Span<const TensorView> tensors() const { return Tensors; }
  std::size_t size() const { return Tensors.size(); }
  /// The output of that name, or null.
  const TensorView *find(std::string_view Name) const;

  /// The only output, or the one called "out", as T. T is a number, bool or
  /// std::string, a std::vector of one of those, a Span<const Number> (a view
  /// in place, of exactly that type) or Advice.
  template <typename T> Expected<T> get() const;
  /// The output \p Name as T.
  template <typename T> Expected<T> get(std::string_view Name) const;

  /// The only output, or the one called "out".
  Expected<const TensorView *> only() const;
  /// As find(), but none is a SchemaMismatch that lists those there are.
  Expected<const TensorView *> named(std::string_view Name) const;

private:
  Span<const TensorView> Tensors;
};

namespace detail {

/// Writes \p Tensor's elements, converted, to \p Out, which has room for
/// Tensor.numElements() elements of type \p To.
Error convertElements(const TensorView &Tensor, ElementType To, void *Out);
/// "advice 'x': expected <Wanted>, found float[3]".
Error adviceMismatch(const TensorView &Tensor, std::string_view Wanted);
Expected<std::string> stringOf(const TensorView &Tensor);
Expected<std::vector<std::string>> stringsOf(const TensorView &Tensor);

template <typename T> struct VectorElement {
  using type = void;
};
template <typename T> struct VectorElement<std::vector<T>> {
  using type = T;
};
template <typename T> struct SpanElement {
  using type = void;
};
template <typename T> struct SpanElement<Span<const T>> {
  using type = T;
};

template <typename T> Expected<T> adviceAs(const TensorView &Tensor) {
  using InVector = typename VectorElement<T>::type;
  using InSpan = typename SpanElement<T>::type;
  if constexpr (std::is_same_v<T, std::string>) {
    return stringOf(Tensor);
  } else if constexpr (std::is_same_v<InVector, std::string>) {
    return stringsOf(Tensor);
  } else if constexpr (IsElement<T>) {
    if (Tensor.Type == ElementType::String || Tensor.numElements() != 1)
      return adviceMismatch(Tensor, elementTypeName(*elementTypeOf<T>()));
    T Value{};
    if (Error E = convertElements(Tensor, *elementTypeOf<T>(), &Value))
      return E;
    return Value;
  } else if constexpr (std::is_same_v<InVector, bool>) {
    std::vector<std::uint8_t> Bytes(Tensor.numElements());
    if (Error E = convertElements(Tensor, ElementType::Bool, Bytes.data()))
      return E;
    return std::vector<bool>(Bytes.begin(), Bytes.end());
  } else if constexpr (!std::is_void_v<InVector>) {
    std::vector<InVector> Values(
        Tensor.Type == ElementType::String ? 0 : Tensor.numElements());
    if (Error E =
            convertElements(Tensor, *elementTypeOf<InVector>(), Values.data()))
      return E;
    return Values;
  } else {
    static_assert(IsElement<InSpan>,
                  "advice is a number, bool or string, a std::vector of one "
                  "of those, a Span<const Number>, or Advice");
    if (std::optional<Span<const InSpan>> S = Tensor.as<InSpan>())
      return *S;
    return adviceMismatch(
        Tensor,
        "a view of " + std::string(elementTypeName(*elementTypeOf<InSpan>())));
  }
}

} // namespace detail

template <typename T> constexpr AdviceSpec AdviceSpec::of() {
  using InVector = typename detail::VectorElement<T>::type;
  using InSpan = typename detail::SpanElement<T>::type;
  if constexpr (std::is_same_v<T, Advice>)
    return {};
  else if constexpr (std::is_same_v<T, std::string>)
    return {Form::Scalar, ElementType::String};
  else if constexpr (std::is_same_v<InVector, std::string>)
    return {Form::List, ElementType::String};
  else if constexpr (IsElement<T>)
    return {Form::Scalar, *elementTypeOf<T>()};
  else if constexpr (IsElement<InVector>)
    return {Form::List, *elementTypeOf<InVector>()};
  else
    return {Form::List, *elementTypeOf<InSpan>()};
}

template <typename T> Expected<T> Advice::get() const {
  if constexpr (std::is_same_v<T, Advice>) {
    return *this;
  } else {
    Expected<const TensorView *> Tensor = only();
    if (!Tensor)
      return Tensor.takeError();
    return detail::adviceAs<T>(**Tensor);
  }
}

template <typename T> Expected<T> Advice::get(std::string_view Name) const {
  Expected<const TensorView *> Tensor = named(Name);
  if (!Tensor)
    return Tensor.takeError();
  return detail::adviceAs<T>(**Tensor);
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_ADVICE_H
