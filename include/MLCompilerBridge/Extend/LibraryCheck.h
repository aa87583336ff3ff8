//===- LibraryCheck.h - Libraries that are all there ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkLibrary() and LibraryFile: for those who load libraries that others
/// have copied about, or replace. The dynamic linker believes what a file says
/// of itself, and the process ends by SIGBUS where that was cut short; and it
/// takes a file of a name that it knows for the one that it has loaded.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
#define MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H

#include "MLCompilerBridge/Error.h"

#include <string>
#include <utility>

namespace MLBridge {

/// Looks whether the file at \p Path is a shared library of this machine's
/// kind, and not cut short. Call it before dlopen(). ErrorCode::System: it
/// cannot be read; InvalidArgument: it is a folder, a FIFO or the like;
/// Malformed: it is no library, or not all of one.
Error checkLibrary(const std::string &Path);

/// What dlopen() gives for \p Name, a path, or without a slash a name that the
/// dynamic linker looks for. A path must be a whole library (checkLibrary()).
/// Unsupported, with the reason, where it cannot be loaded; System where memory
/// ran out.
Expected<void *> openLibrary(const std::string &Name, int Flags);

/// A file that checkLibrary() finds nothing wrong with, held open until the
/// dynamic linker has it, so that nobody puts another in its place meanwhile:
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

  /// A name of this file for dlopen(), as long as this object is there, that no
  /// other file has while this one is loaded. It is long, and nothing to show.
  const std::string &name() const { return Name; }

private:
  explicit LibraryFile(int FD) : FD(FD) {}

  int FD;
  std::string Name;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_LIBRARYCHECK_H
