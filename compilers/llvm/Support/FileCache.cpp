//===- FileCache.cpp - Caches what was loaded from files ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the stamps of files.
///
//===----------------------------------------------------------------------===//

#include "Support/FileCache.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace MLBridge {

Expected<FileStamp> stampOfModule(StringRef Path) {
  sys::fs::file_status Status;
  if (std::error_code Why = sys::fs::status(Path, Status))
    return Error(
        ErrorCode::System,
        ("module '" + Path + "': cannot be read: " + Why.message()).str());
  return FileStamp(Status.getLastModificationTime().time_since_epoch().count(),
                   Status.getSize());
}

} // namespace MLBridge
