//===- Call.h - Calls between C and the library -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines call(), through which every function of the C API runs its code.
/// call() converts an Error to a status and the thread's last message. It also
/// converts exceptions to a status.
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

/// Returns the last error message of this thread, or "" if there is no message.
const char *lastMessage() noexcept;
/// Sets the last error message of this thread. A null \p Message clears it.
void setLastMessage(const char *Message) noexcept;

/// The last error message of a thread. The message is Text, unless there was no
/// memory to store it.
struct LastMessage {
  std::string Text;
  bool NoMemory = false;
};
/// Removes and returns this thread's message.
LastMessage takeLastMessage() noexcept;
/// Restores the message \p Earlier, unless there is a later message.
void giveBack(LastMessage Earlier) noexcept;
/// Returns the code of \p E. If \p E is a failure, stores its message.
MLBridgeStatus report(const Error &E) noexcept;
/// Stores a message about exhausted memory and returns MLBridgeStatusSystem.
MLBridgeStatus reportNoMemory() noexcept;

/// Returns the error for a null pointer, such as "'Spec' is null".
Error isNull(const char *Parameter);

/// Checks the size of a struct of callbacks. The caller's struct has \p Found
/// bytes, and this version of the struct has \p Known bytes.
Error checkSize(std::size_t Found, std::size_t Known);

/// Runs \p Do, which returns an Error, and converts the result to a status.
///
/// Only this function and the Python bindings catch exceptions. Operator new
/// throws an exception if memory runs out. This function converts the exception
/// to a status, so that a program written in C receives an error and does not
/// end. The rest of the library throws no exceptions. If operator new throws,
/// the library releases its resources.
template <typename Function> MLBridgeStatus call(Function &&Do) noexcept {
  try {
    return report(std::forward<Function>(Do)());
  } catch (const std::bad_alloc &) {
    return reportNoMemory();
  } catch (...) {
    // For example, a container throws std::length_error if its size would
    // exceed the maximum.
    return report(Error(ErrorCode::InvalidArgument, "a size is out of range"));
  }
}

/// Calls \p Callback, which calls the user's callback named \p What and returns
/// its status. Converts the status to an Error.
template <typename Function>
Error callUser(const char *What, Function &&Callback) {
  // Remove the earlier message, so that it is not mistaken for the callback's
  // message. If the callback succeeds, restore the earlier message.
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
