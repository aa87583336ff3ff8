//===- ReadFile.h - All of a file that a user named -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readFile(): MemoryBuffer::getFile() waits for the writer of a FIFO, and
/// reads a device such as /dev/zero until memory runs out.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_READFILE_H
#define MLBRIDGE_LLVM_READFILE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace MLBridge {

/// What is in \p Path, a regular file of at most \p MaxBytes; not mapped, so
/// that nobody changes it under its reader. The error says why it cannot be
/// read, and not which file that is.
Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(llvm::StringRef Path,
                                                       std::uint64_t MaxBytes);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_READFILE_H
