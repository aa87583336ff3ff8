//===- ReadFile.h - Reads a file named by the user --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readFile() reads a file that the user has named. Unlike
/// MemoryBuffer::getFile(), it refuses FIFOs, because reading them could block.
/// It also refuses devices such as /dev/zero, because their contents could
/// exhaust memory. parseLines() parses the contents of a file.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_READFILE_H
#define MLBRIDGE_LLVM_SUPPORT_READFILE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace MLBridge {

/// Reads the regular file \p Path into memory. The file may have at most \p
/// MaxBytes bytes. The file is not mapped, so later changes to it do not affect
/// the result. The error's message contains the reason but not the file name.
Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(llvm::StringRef Path,
                                                       std::uint64_t MaxBytes);

/// Calls \p Parse with each line of \p Text, without its line break (LF, or CR
/// LF). Returns the first error, whose message then begins with the number of
/// the line.
Error parseLines(llvm::StringRef Text,
                 llvm::function_ref<Error(llvm::StringRef Line)> Parse);

/// Returns \p E with a message that begins with the file \p Path.
Error inFile(llvm::StringRef Path, const Error &E);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_READFILE_H
