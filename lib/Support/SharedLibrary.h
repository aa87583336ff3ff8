//===- SharedLibrary.h - Opening libraries with care ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SharedLibrary: a library that is open as long as this is there. The dynamic
/// linker believes what a file says of itself and dies of one that was cut
/// short; so the file is looked at first.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_SHAREDLIBRARY_H
#define MLBRIDGE_LIB_SUPPORT_SHAREDLIBRARY_H

#include "MLCompilerBridge/Error.h"

#include <memory>
#include <string>

namespace MLBridge {

class SharedLibrary {
public:
  /// ErrorCode::System: \p Path cannot be read. Malformed: it is no library, or
  /// not all of one. Unsupported: the dynamic linker refuses it.
  static Expected<SharedLibrary> open(const std::string &Path);

  /// The address of a symbol, or null.
  const void *find(const char *Symbol) const;

private:
  struct Close {
    void operator()(void *Handle) const;
  };

  explicit SharedLibrary(void *Handle) : Handle(Handle) {}

  std::unique_ptr<void, Close> Handle;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_SHAREDLIBRARY_H
