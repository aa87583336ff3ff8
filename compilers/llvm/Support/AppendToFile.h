//===- AppendToFile.h - Files that several compilers write ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// appendToFile() writes lines to a file to which other compilers may append at
/// the same time.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_APPENDTOFILE_H
#define MLBRIDGE_LLVM_SUPPORT_APPENDTOFILE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace MLBridge {

/// Appends \p Text to \p File with a single write. Returns System if this
/// fails.
inline Error appendToFile(llvm::StringRef File, llvm::StringRef Text) {
  std::error_code Failure;
  llvm::raw_fd_ostream Output(File, Failure, llvm::sys::fs::OF_Append);
  if (!Failure) {
    Output.SetUnbuffered();
    Output << Text;
    Failure = Output.error();
    Output.clear_error();
  }
  if (Failure)
    return {ErrorCode::System,
            ("cannot write to " + File + ": " + Failure.message()).str()};
  return Error::success();
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_APPENDTOFILE_H
