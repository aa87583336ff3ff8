//===- ReadFile.h - Reads a file named by the user --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// readFile(): unlike MemoryBuffer::getFile(), refuses FIFOs, which would
/// block, and devices such as /dev/zero, which would exhaust memory.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_READFILE_H
#define MLBRIDGE_LLVM_READFILE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace MLBridge {

/// Reads \p Path, a regular file of at most \p MaxBytes, into memory; not
/// mapped, so that nobody can change the contents. The error gives the reason
/// but not the file name.
Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(llvm::StringRef Path,
                                                       std::uint64_t MaxBytes);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_READFILE_H
