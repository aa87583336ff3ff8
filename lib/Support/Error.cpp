//===- Error.cpp - Error codes and messages -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the names of error codes, and the conversion from errno.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Error.h"

#include <cstring>

using namespace MLBridge;

std::string_view MLBridge::errorCodeName(ErrorCode Code) {
  switch (Code) {
  case ErrorCode::Success:
    return "Success";
  case ErrorCode::Timeout:
    return "Timeout";
  case ErrorCode::PeerClosed:
    return "PeerClosed";
  case ErrorCode::Malformed:
    return "Malformed";
  case ErrorCode::SchemaMismatch:
    return "SchemaMismatch";
  case ErrorCode::Model:
    return "Model";
  case ErrorCode::Unsupported:
    return "Unsupported";
  case ErrorCode::System:
    return "System";
  case ErrorCode::InvalidArgument:
    return "InvalidArgument";
  case ErrorCode::Deferred:
    return "Deferred";
  }
  return "unknown error";
}

/// Returns the text from strerror_r. C libraries declare this function in one
/// of two forms, so overload resolution selects the right function. The POSIX
/// form returns a status and writes the text to the buffer.
[[maybe_unused]] static const char *reasonIn(int Status, const char *Buffer) {
  return Status == 0 ? Buffer : "unknown reason";
}
/// The GNU form of strerror_r returns the text, which may be outside Buffer.
[[maybe_unused]] static const char *reasonIn(const char *Text, const char *) {
  return Text;
}

Error Error::fromErrno(int Errno, std::string What) {
  char Buffer[256];
  What += ": ";
  What += reasonIn(::strerror_r(Errno, Buffer, sizeof(Buffer)), Buffer);
  return {ErrorCode::System, std::move(What)};
}

std::string Error::str() const {
  std::string Text(errorCodeName(Code));
  if (!Message.empty())
    Text += ": " + Message;
  return Text;
}
