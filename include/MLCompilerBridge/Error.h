//===- Error.h - Error codes and messages -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Error and Expected<T>, the types in which this library reports every
/// failure. The library throws no exceptions and never asserts on external
/// input. A function that fails never returns an invented value.
///
/// As in LLVM, an Error is true if something failed, and an Expected<T> is true
/// if it holds a value.
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

/// The kind of a failure. Callers can branch on this code.
enum class ErrorCode : std::uint8_t {
  Success,
  /// The peer did not connect or reply before the deadline.
  Timeout,
  /// The peer's process ended, or the peer closed the channel.
  PeerClosed,
  /// The received bytes violate the wire format, for example because a message
  /// is truncated, too long or inconsistent.
  Malformed,
  /// A message is well-formed, but a name, type or shape differs from the
  /// requested one, or a value does not fit the requested type.
  SchemaMismatch,
  /// The model itself failed. The message comes from the model.
  Model,
  /// This library, or this build of the library, does not support the request.
  Unsupported,
  /// A system call failed. The message ends with the operating system's reason.
  System,
  /// The caller passed an invalid model spec, option or shape.
  InvalidArgument,
  /// The model leaves the decision to the compiler. This is not a failure.
  Deferred,
};

/// Returns the name of \p Code, such as "Timeout" or "PeerClosed".
std::string_view errorCodeName(ErrorCode Code);

/// A failure: a code and a message. The message is one sentence that names the
/// peer or the feature, and states what was expected and what was found. A
/// default-constructed Error is success.
// The class Expected stores an Error in a std::variant, which the analyzer does
// not understand. The analyzer therefore reports an uninitialized Error here.
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
  /// Returns a System error: \p What followed by strerror(\p Errno).
  static Error fromErrno(int Errno, std::string What);

  /// Returns true if something failed.
  explicit operator bool() const { return Code != ErrorCode::Success; }
  ErrorCode code() const { return Code; }
  const std::string &message() const { return Message; }
  bool isDeferred() const { return Code == ErrorCode::Deferred; }

  /// Returns the code and the message, for example "Timeout: pipe:/tmp/advisor
  /// did not answer within 30 s".
  std::string str() const;

private:
  ErrorCode Code = ErrorCode::Success;
  std::string Message;
};

/// A value of type T, or the Error that explains why there is no value.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T Value) : Storage(std::in_place_index<0>, std::move(Value)) {}
  Expected(Error E) : Storage(std::in_place_index<1>, std::move(E)) {}

  /// Converts from a type that converts to T. For example, T may be a
  /// std::unique_ptr<Base>, and U a std::unique_ptr<Derived>.
  template <typename U,
            std::enable_if_t<std::is_convertible_v<U, T> &&
                                 !std::is_same_v<std::decay_t<U>, T> &&
                                 !std::is_convertible_v<U, Error>,
                             int> = 0>
  Expected(U &&Value)
      : Storage(std::in_place_index<0>, std::forward<U>(Value)) {}
  /// Converts from an Expected of a type that converts to T.
  template <typename U,
            typename = std::enable_if_t<std::is_convertible_v<U, T> &&
                                        !std::is_same_v<U, T>>>
  Expected(Expected<U> Other)
      : Expected(Other ? Expected(T(std::move(*Other)))
                       : Expected(Other.takeError())) {}

  /// Returns true if this object holds a value.
  explicit operator bool() const { return Storage.index() == 0; }

  /// Returns the value. The behaviour is undefined if this object holds an
  /// error.
  T &operator*() { return *std::get_if<0>(&Storage); }
  const T &operator*() const { return *std::get_if<0>(&Storage); }
  T *operator->() { return std::get_if<0>(&Storage); }
  const T *operator->() const { return std::get_if<0>(&Storage); }

  /// Moves the error out of this object. Returns success if this object holds a
  /// value.
  Error takeError() {
    Error *E = std::get_if<1>(&Storage);
    return E ? std::move(*E) : Error::success();
  }
  /// Returns the error's code, or Success if this object holds a value.
  ErrorCode code() const {
    const Error *E = std::get_if<1>(&Storage);
    return E ? E->code() : ErrorCode::Success;
  }
  /// Returns the error's message, or an empty string if this object holds a
  /// value.
  std::string_view message() const {
    const Error *E = std::get_if<1>(&Storage);
    return E ? std::string_view(E->message()) : std::string_view();
  }

private:
  std::variant<T, Error> Storage;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_ERROR_H
