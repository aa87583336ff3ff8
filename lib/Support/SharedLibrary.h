//===- SharedLibrary.h - RAII for dlopen() ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines SharedLibrary, which loads and owns a library. It checks the file
/// before loading it, because a truncated file would crash the dynamic linker.
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
  /// Loads the library \p Path. Returns the errors of checkLibrary(), or
  /// Unsupported if the dynamic linker cannot load the file.
  static Expected<SharedLibrary> open(const std::string &Path);

  /// Returns the address of \p Symbol, or null if the library lacks it.
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
