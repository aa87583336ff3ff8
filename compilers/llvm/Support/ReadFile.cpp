//===- ReadFile.cpp - Reads a file named by the user ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/ReadFile.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace MLBridge {

static StringRef kindOf(sys::fs::file_type Type) {
  switch (Type) {
  case sys::fs::file_type::directory_file:
    return "a folder";
  case sys::fs::file_type::fifo_file:
    return "a FIFO";
  case sys::fs::file_type::socket_file:
    return "a socket";
  default:
    return "a device";
  }
}

Expected<std::unique_ptr<MemoryBuffer>> readFile(StringRef Path,
                                                 std::uint64_t MaxBytes) {
  sys::fs::file_status Status;
  if (std::error_code Code = sys::fs::status(Path, Status))
    return Error(ErrorCode::System, Code.message());
  if (!sys::fs::is_regular_file(Status))
    return Error(
        ErrorCode::InvalidArgument,
        ("expected a regular file, found " + kindOf(Status.type())).str());
  if (Status.getSize() > MaxBytes)
    return Error(ErrorCode::Malformed,
                 ("expected at most " + Twine(MaxBytes) + " bytes, found " +
                  Twine(Status.getSize()))
                     .str());
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/true,
                                      /*IsVolatile=*/true);
  if (!Buffer)
    return Error(ErrorCode::System, Buffer.getError().message());
  return std::move(*Buffer);
}

Error parseLines(StringRef Text, function_ref<Error(StringRef Line)> Parse) {
  for (unsigned Number = 1; !Text.empty(); ++Number) {
    auto [Line, Rest] = Text.split('\n');
    Line.consume_back("\r");
    if (Error E = Parse(Line))
      return {E.code(), "line " + std::to_string(Number) + ": " + E.message()};
    Text = Rest;
  }
  return Error::success();
}

Error inFile(StringRef Path, const Error &E) {
  return {E.code(), (Path + ": " + E.message()).str()};
}

} // namespace MLBridge
