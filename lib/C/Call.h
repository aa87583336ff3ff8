//===- Call.h - From C into the library and back ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What every function of the C API does around its own work: an Error becomes
/// a status and the thread's last message, and memory that has run out an
/// Error.
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

/// The sentence to the last failure on this thread, "" where there is none.
const char *lastMessage() noexcept;
/// Null forgets it.
void setLastMessage(const char *Message) noexcept;

/// Which is in Text unless there was no memory for it.
struct LastMessage {
  std::string Text;
  bool NoMemory = false;
};
/// Takes this thread's, so that it has none.
LastMessage takeLastMessage() noexcept;
/// Gives it back, unless there is a later one.
void giveBack(LastMessage Earlier) noexcept;
/// Keeps the sentence of \p E, unless it is success, and returns the code.
MLBridgeStatus report(const Error &E) noexcept;
/// The same for memory that has run out.
MLBridgeStatus reportNoMemory() noexcept;

/// "'Spec' is null".
Error isNull(const char *Parameter);

/// Whether a struct of callbacks that says it has \p Found bytes is the one
/// that this library knows.
Error checkSize(std::size_t Found, std::size_t Known);

/// Runs \p Do, which returns an Error, for a caller that knows of nothing but a
/// status.
///
/// The one part of the library that catches exceptions, for the one that
/// operator new throws: a tool written in C is to be told and not ended. What
/// is between gives back what it holds, and throws none itself.
template <typename Function> MLBridgeStatus call(Function &&Do) noexcept {
  try {
    return report(std::forward<Function>(Do)());
  } catch (const std::bad_alloc &) {
    return reportNoMemory();
  } catch (...) {
    // Such as std::length_error, for sizes that no memory could have.
    return report(Error(ErrorCode::InvalidArgument, "a size is out of range"));
  }
}

/// What a callback of the user's has said, as an Error. \p Ask calls it.
template <typename Function> Error askUser(const char *What, Function &&Ask) {
  // What it does not set must not be taken from an older failure, which stays
  // the last one if this is none.
  LastMessage Earlier = takeLastMessage();
  const MLBridgeStatus Status = std::forward<Function>(Ask)();
  if (Status == MLBridgeStatusSuccess) {
    giveBack(std::move(Earlier));
    return Error::success();
  }
  if (Status < MLBridgeStatusSuccess || Status > MLBridgeStatusDeferred)
    return {ErrorCode::InvalidArgument, std::string(What) + " returned " +
                                            std::to_string(int(Status)) +
                                            ", which is no MLBridgeStatus"};
  const char *Message = lastMessage();
  return {static_cast<ErrorCode>(Status),
          *Message ? std::string(Message)
                   : std::string(What) + " failed and did not say why "
                                         "(mlbridgeFail() does)"};
}

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_CALL_H
