//===- FileStamp.h - Detects changes of a model's files ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FileStamp: detects that a model file has changed, without reading the file.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_FILESTAMP_H
#define MLBRIDGE_LIB_INPROCESS_FILESTAMP_H

#include "MLCompilerBridge/Error.h"

#include <array>
#include <string>
#include <vector>

namespace MLBridge::inprocess {

/// Identifies one state of a file, or of all files in a folder.
class FileStamp {
public:
  /// Whether a model may be a folder.
  enum class Folders { Refused, Allowed };

  /// Returns the stamp of \p Path. Returns a System error if \p Path does not
  /// exist. Returns an InvalidArgument error if \p Path cannot be a model, in
  /// these cases:
  /// - It is a folder, but \p Allowed is Refused.
  /// - It is a folder with too many files.
  /// - It is a FIFO. Opening a FIFO could block forever.
  static Expected<FileStamp> of(const std::string &Path,
                                Folders Allowed = Folders::Refused);

  /// Returns the stamp of several files, none of which may be a folder. A file
  /// may be missing. If it is created later, the stamp changes.
  static Expected<FileStamp> ofParts(const std::vector<std::string> &Paths);

  friend bool operator==(const FileStamp &, const FileStamp &) = default;

private:
  Error add(const std::string &Path, Folders Allowed);
  Error addFolder(const std::string &Path);

  /// Five numbers for each file: the device, the inode, the size in bytes, and
  /// the seconds and nanoseconds of the modification time. The files are sorted
  /// by name.
  std::vector<std::array<std::uint64_t, 5>> Files;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FILESTAMP_H
