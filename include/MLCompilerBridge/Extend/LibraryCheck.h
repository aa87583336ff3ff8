//===- LibraryCheck.h - Checks before dlopen() ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines checkLibrary() and LibraryFile, for libraries that may be truncated
/// or replaced. dlopen() alone has two problems with these libraries. First,
/// dlopen() trusts a file's headers, so a truncated file ends the process with
/// SIGBUS. Second, dlopen() identifies a file by its name, so it does not load
/// a new file that has the name of a loaded file.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
#define MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H

#include "MLCompilerBridge/Error.h"

#include <string>
#include <utility>

namespace MLBridge {

/// Checks that the file at \p Path is a complete shared library for this
/// machine. Call this function before dlopen(). Returns one of these errors:
/// - System if the file cannot be read.
/// - InvalidArgument if the file is not a regular file.
/// - Malformed if the file is not a library or is truncated.
Error checkLibrary(const std::string &Path);

/// Calls dlopen() for \p Name. If \p Name contains a slash, it is a path, and
/// the file is first checked with checkLibrary(). Otherwise, the dynamic linker
/// searches for \p Name. Returns System if memory runs out, or Unsupported with
/// the reason if the library cannot be loaded.
Expected<void *> openLibrary(const std::string &Name, int Flags);

/// A library file that has passed checkLibrary(). The object keeps the file
/// open, so that dlopen() loads the checked file even if another file has
/// replaced it:
/// \code
///   Expected<LibraryFile> File = LibraryFile::open("policy.so");
///   if (!File)
///     return File.takeError();
///   void *Handle = dlopen(File->name().c_str(), RTLD_NOW | RTLD_LOCAL);
/// \endcode
class LibraryFile {
public:
  /// Opens and checks the file. Returns the errors of checkLibrary().
  static Expected<LibraryFile> open(const std::string &Path);

  LibraryFile(LibraryFile &&Other) noexcept
      : FD(std::exchange(Other.FD, -1)), Name(std::move(Other.Name)) {}
  LibraryFile &operator=(LibraryFile &&Other) noexcept {
    std::swap(FD, Other.FD);
    std::swap(Name, Other.Name);
    return *this;
  }
  ~LibraryFile();

  /// Returns a name of this file for dlopen(). The name is valid while this
  /// object exists, and no other file has this name while the library is
  /// loaded. Do not use the name in messages, because it is long.
  const std::string &name() const { return Name; }

private:
  explicit LibraryFile(int FD) : FD(FD) {}

  int FD;
  std::string Name;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
