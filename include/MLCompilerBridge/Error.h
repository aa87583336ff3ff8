//===- Error.h - What can go wrong, and how it is said ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Error and Expected<T>: the only way a failure leaves this library. There
/// are no exceptions, no asserts on input from outside and no made-up values.
///
/// They read as LLVM's do: an Error is true when something failed, an
/// Expected<T> is true when there is a value.
/// \code
///   if (Error E = Log.flush())
///     return E;
///   Expected<bool> Inline = Runner->tryEvaluate<bool>();
///   if (!Inline)
///     return Inline.takeError();
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_ERROR_H
#define MLCOMPILERBRIDGE_ERROR_H

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace MLBridge {

/// The kind of a failure; what a caller may want to branch on.
enum class ErrorCode : std::uint8_t {
  Success,
  /// The peer did not answer, or was not there, before the deadline.
  Timeout,
  /// The peer's process ended, or it closed the channel.
  PeerClosed,
  /// Bytes that do not follow the wire format: truncated, oversized, lying.
  Malformed,
  /// Well-formed, but not what was asked for: a name, type or shape differs,
  /// or a value cannot be represented in the type that was asked for.
  SchemaMismatch,
  /// The model itself failed; the message is the model's own.
  Model,
  /// A feature of this library or of this build that is not there.
  Unsupported,
  /// The operating system said no (the message ends with its reason).
  System,
  /// A wrong argument from the caller: a model spec, an option, a shape.
  InvalidArgument,
  /// Not a failure: the model leaves the decision to the compiler.
  Deferred,
};

/// "Timeout", "PeerClosed", ...
std::string_view errorCodeName(ErrorCode Code);

/// A failure: a code, and one sentence that names the peer, the feature, what
/// was expected and what was found. Default-constructed: success.
// The analyzer does not follow std::variant, in which Expected keeps one.
// NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign)
class [[nodiscard]] Error {
public:
  Error() = default;
  Error(ErrorCode Code, std::string Message)
      : Code(Code), Message(std::move(Message)) {}

  static Error success() { return {}; }
  static Error deferred(std::string Why) {
    return {ErrorCode::Deferred, std::move(Why)};
  }
  /// A System error with strerror(\p Errno) appended to \p What.
  static Error fromErrno(int Errno, std::string What);

  /// True when something failed.
  explicit operator bool() const { return Code != ErrorCode::Success; }
  ErrorCode code() const { return Code; }
  const std::string &message() const { return Message; }
  bool isDeferred() const { return Code == ErrorCode::Deferred; }

  /// "Timeout: pipe:/tmp/advisor did not answer within 30 s".
  std::string str() const;

private:
  ErrorCode Code = ErrorCode::Success;
  std::string Message;
};

/// A T, or the Error that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T Value) : Storage(std::in_place_index<0>, std::move(Value)) {}
  Expected(Error E) : Storage(std::in_place_index<1>, std::move(E)) {}

  /// From something that converts to T, such as std::unique_ptr to a derived
  /// class.
  template <typename U,
            std::enable_if_t<std::is_convertible_v<U, T> &&
                                 !std::is_same_v<std::decay_t<U>, T> &&
                                 !std::is_convertible_v<U, Error>,
                             int> = 0>
  Expected(U &&Value)
      : Storage(std::in_place_index<0>, std::forward<U>(Value)) {}
  /// From an Expected of something that converts to T, such as
  /// std::unique_ptr to a derived class.
  template <typename U,
            typename = std::enable_if_t<std::is_convertible_v<U, T> &&
                                        !std::is_same_v<U, T>>>
  Expected(Expected<U> Other)
      : Expected(Other ? Expected(T(std::move(*Other)))
                       : Expected(Other.takeError())) {}

  /// True when there is a value.
  explicit operator bool() const { return Storage.index() == 0; }

  /// The value. Only when there is one.
  T &operator*() { return *std::get_if<0>(&Storage); }
  const T &operator*() const { return *std::get_if<0>(&Storage); }
  T *operator->() { return std::get_if<0>(&Storage); }
  const T *operator->() const { return std::get_if<0>(&Storage); }

  /// The error; success when there is a value.
  Error takeError() {
    Error *E = std::get_if<1>(&Storage);
    return E ? std::move(*E) : Error::success();
  }
  /// The code of the error, Success when there is a value.
  ErrorCode code() const {
    const Error *E = std::get_if<1>(&Storage);
    return E ? E->code() : ErrorCode::Success;
  }
  /// The error's message, empty when there is a value.
  std::string_view message() const {
    const Error *E = std::get_if<1>(&Storage);
    return E ? std::string_view(E->message()) : std::string_view();
  }

private:
  std::variant<T, Error> Storage;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_ERROR_H
