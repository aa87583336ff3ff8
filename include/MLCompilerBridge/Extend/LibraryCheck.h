//===- LibraryCheck.h - Checks before dlopen() ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkLibrary() and LibraryFile: for loading libraries that may be truncated
/// or replaced. The dynamic linker trusts a file's headers, so a truncated file
/// kills the process with SIGBUS. The linker also identifies a file by its
/// name, so it does not load a new file under the name of a loaded one.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
#define MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H

#include "MLCompilerBridge/Error.h"

#include <string>
#include <utility>

namespace MLBridge {

/// Checks that the file at \p Path is a complete shared library for this
/// machine. Call this before dlopen(). ErrorCode::System: the file cannot be
/// read; InvalidArgument: it is not a regular file; Malformed: it is not a
/// library, or truncated.
Error checkLibrary(const std::string &Path);

/// Calls dlopen() for \p Name: a path, or, without a slash, a name that the
/// dynamic linker searches for. Checks a path with checkLibrary() first.
/// ErrorCode::Unsupported, with the reason: the library cannot be loaded;
/// System: out of memory.
Expected<void *> openLibrary(const std::string &Name, int Flags);

/// A library file that passed checkLibrary(), held open until dlopen() so that
/// it cannot be replaced in between:
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

  /// A name of this file for dlopen(), valid while this object exists. No other
  /// file gets this name while this one is loaded. Long; not meant for display.
  const std::string &name() const { return Name; }

private:
  explicit LibraryFile(int FD) : FD(FD) {}

  int FD;
  std::string Name;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
