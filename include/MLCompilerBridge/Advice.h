//===- Advice.h - A model's reply -------------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Advice, the named tensors of one reply, and the conversions from a
/// tensor to the C++ type that a pass requests.
///
/// **Conversions** preserve the value. For example, an int64_t 5 and a double
/// 1.0 convert to int, but 300 does not convert to int8_t and 0.5 does not
/// convert to int. Only a conversion from double to float may round. Any other
/// conversion that would change the value returns SchemaMismatch.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_ADVICE_H
#define MLCOMPILERBRIDGE_ADVICE_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <string>
#include <vector>

namespace MLBridge {

/// The type of advice that a caller of evaluate<T> expects. Runners and peers
/// need this type for replies that do not contain a type, such as JSON numbers,
/// or the raw bytes from a foreign model.
struct AdviceSpec {
  enum class Form : std::uint8_t {
    Any,    ///< Accept any reply, because T is Advice.
    Scalar, ///< Accept one element.
    List,   ///< Accept any number of elements.
  };
  Form Wanted = Form::Any;
  /// The element type. Ignored if Wanted is Any.
  ElementType Type = ElementType::UInt8;

  static AdviceSpec any() { return {}; }
  template <typename T> static constexpr AdviceSpec of();
};

/// The reply to one request: one tensor, or several named tensors. The views
/// are valid until the next request to the runner that returned them. \see
/// MLModelRunner
class Advice {
public:
  Advice() = default;
  explicit Advice(Span<const TensorView> Tensors) : Tensors(Tensors) {}

  Span<const TensorView> tensors() const { return Tensors; }
  std::size_t size() const { return Tensors.size(); }

  /// Describes the tensors in messages: "'a' float[3], 'b' bool", or "nothing".
  /// Lists at most 8 tensors.
  std::string str() const;
  /// Returns the output called \p Name, or null if there is no such output.
  const TensorView *find(std::string_view Name) const;

  /// Finds the output with only() and converts it to T. T is one of the
  /// following:
  /// - A number, bool or std::string.
  /// - A std::vector of numbers, bools or strings.
  /// - A Span<const Number>. The span views the output in place, so the output
  ///   must have exactly this element type.
  /// - Advice, for the whole reply.
  ///
  /// Returns the error of only() if only() fails, Malformed if a bool is
  /// neither 0 nor 1, and SchemaMismatch if the value does not convert.
  template <typename T> Expected<T> get() const;
  /// Converts the output \p Name to T as the function above does. Returns the
  /// error of named() if named() fails.
  template <typename T> Expected<T> get(std::string_view Name) const;

  /// Returns the only output. If there are several, returns the output named
  /// "out". Otherwise, returns a SchemaMismatch that lists the outputs.
  Expected<const TensorView *> only() const;
  /// Returns the output called \p Name. If there is no such output, returns a
  /// SchemaMismatch that lists the outputs.
  Expected<const TensorView *> named(std::string_view Name) const;

private:
  Span<const TensorView> Tensors;
};

namespace detail {

/// Converts the elements of \p Tensor to \p To and writes them to \p Out.
/// \p Out has room for Tensor.numElements() elements of type \p To.
Error convertElements(const TensorView &Tensor, ElementType To, void *Out);
/// Returns an error such as "advice 'x': expected <Wanted>, found float[3]".
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
