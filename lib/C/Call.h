//===- Call.h - Calls between C and the library -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Shared by all functions of the C API: converts an Error to a status and the
/// thread's last message, and exhausted memory to an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_CALL_H
#define MLBRIDGE_LIB_C_CALL_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/Error.h"

#include <new>
#include <string>
#include <utility>

namespace MLBridge::C {

/// The last error message of this thread, or "".
const char *lastMessage() noexcept;
/// Sets the last error message; null clears it.
void setLastMessage(const char *Message) noexcept;

/// The message is Text, unless there was no memory for it.
struct LastMessage {
  std::string Text;
  bool NoMemory = false;
};
/// Removes and returns this thread's message.
LastMessage takeLastMessage() noexcept;
/// Restores a message, unless a later one exists.
void giveBack(LastMessage Earlier) noexcept;
/// Stores the message of \p E, unless it is success, and returns the code.
MLBridgeStatus report(const Error &E) noexcept;
/// The same for exhausted memory.
MLBridgeStatus reportNoMemory() noexcept;

/// "'Spec' is null".
Error isNull(const char *Parameter);

/// Checks that a struct of callbacks with \p Found bytes is the one that this
/// library knows, which has \p Known bytes.
Error checkSize(std::size_t Found, std::size_t Known);

/// Runs \p Do, which returns an Error, and converts the result to a status.
///
/// Together with the Python bindings, the only part of the library that catches
/// exceptions, because operator new throws: a tool written in C must get an
/// error and not be ended. The code in between releases its resources and
/// throws nothing itself.
/// is between gives back what it holds, and throws none itself.
template <typename Function> MLBridgeStatus call(Function &&Do) noexcept {
  try {
    return report(std::forward<Function>(Do)());
  } catch (const std::bad_alloc &) {
    return reportNoMemory();
  } catch (...) {
    // For example std::length_error, for sizes that no memory could have.
    return report(Error(ErrorCode::InvalidArgument, "a size is out of range"));
  }
}

/// Calls a user's callback through \p Callback and converts its status to an
/// Error.
template <typename Function>
Error callUser(const char *What, Function &&Callback) {
  // Hide an older message, which must not count as the callback's. If the
  // callback succeeds, that message remains the last one.
  LastMessage Earlier = takeLastMessage();
  const MLBridgeStatus Status = std::forward<Function>(Callback)();
  if (Status == MLBridgeStatusSuccess) {
    giveBack(std::move(Earlier));
    return Error::success();
  }
  if (Status < MLBridgeStatusSuccess || Status > MLBridgeStatusDeferred)
    return {ErrorCode::InvalidArgument, std::string(What) + " returned " +
                                            std::to_string(int(Status)) +
                                            ", which is not an MLBridgeStatus"};
  const char *Message = lastMessage();
  return {static_cast<ErrorCode>(Status),
          *Message ? std::string(Message)
                   : std::string(What) +
                         " failed without a message (see mlbridgeFail())"};
}

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_CALL_H
