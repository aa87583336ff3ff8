//===- LibraryCheck.h - Checks libraries before dlopen() --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkLibrary() and LibraryFile: load libraries that were copied by hand or
/// may be replaced. The dynamic linker trusts a file's headers, so the process
/// dies with SIGBUS if the file was cut short. It also identifies libraries by
/// name, so a new file with a known name yields the old library.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
#define MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H

#include "MLCompilerBridge/Error.h"

#include <string>
#include <utility>

namespace MLBridge {

/// Checks that the file at \p Path is a complete shared library for this
/// machine. Call it before dlopen(). Errors: System: the file cannot be read.
/// InvalidArgument: it is a folder, a FIFO or another special file. Malformed:
/// it is not a shared library, or is cut short.
Error checkLibrary(const std::string &Path);

/// Calls dlopen() for \p Name: a path, or without a slash a name that the
/// dynamic linker searches for. A path must pass checkLibrary(). Errors:
/// Unsupported, with the reason, if the library cannot be loaded; System if
/// memory ran out.
Expected<void *> openLibrary(const std::string &Name, int Flags);

/// A file that has passed checkLibrary(). It stays open until the dynamic
/// linker has loaded it, so that it cannot be replaced in between:
/// \code
///   Expected<LibraryFile> File = LibraryFile::open("policy.so");
///   if (!File)
///     return File.takeError();
///   void *Handle = dlopen(File->name().c_str(), RTLD_NOW | RTLD_LOCAL);
/// \endcode
class LibraryFile {
public:
  /// Fails as checkLibrary() does.
  static Expected<LibraryFile> open(const std::string &Path);

  LibraryFile(LibraryFile &&Other) noexcept
      : FD(std::exchange(Other.FD, -1)), Name(std::move(Other.Name)) {}
  LibraryFile &operator=(LibraryFile &&Other) noexcept {
    std::swap(FD, Other.FD);
    std::swap(Name, Other.Name);
    return *this;
  }
  ~LibraryFile();

  /// A name of this file for dlopen(), valid while this object lives. No other
  /// file has the name while this one is loaded. Long; not meant for display.
  const std::string &name() const { return Name; }

private:
  explicit LibraryFile(int FD) : FD(FD) {}

  int FD;
  std::string Name;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
