//===- FileStamp.h - Detects changes of a model's files ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FileStamp: detects that a model file has changed without reading it.
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

  /// The stamp of \p Path. System if the file does not exist. InvalidArgument
  /// if it cannot be a model: a folder where folders are refused, a folder with
  /// too many files, or a FIFO, whose opening could block forever.
  static Expected<FileStamp> of(const std::string &Path,
                                Folders Allowed = Folders::Refused);

  /// The stamp of several files, not folders. Missing files count: creating one
  /// changes the stamp.
  static Expected<FileStamp> ofParts(const std::vector<std::string> &Paths);

  friend bool operator==(const FileStamp &, const FileStamp &) = default;

private:
  Error add(const std::string &Path, Folders Allowed);
  Error addFolder(const std::string &Path);

  /// Device, inode, size, seconds and nanoseconds of each file, sorted by name.
  std::vector<std::array<std::uint64_t, 5>> Files;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FILESTAMP_H
