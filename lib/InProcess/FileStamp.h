//===- FileStamp.h - Whether a model's file has changed ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FileStamp: how a changed model file is noticed, without reading it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_FILESTAMP_H
#define MLBRIDGE_LIB_INPROCESS_FILESTAMP_H

#include "MLCompilerBridge/Error.h"

#include <array>
#include <string>
#include <vector>

namespace MLBridge::inprocess {

/// What tells one state of a file from another; of a folder, of all files in
/// it.
class FileStamp {
public:
  /// Whether a folder can be a model.
  enum class Folders { Refused, Allowed };

  /// System where there is no such file, InvalidArgument where it cannot be a
  /// model: it is a folder where those are refused, a folder of more files than
  /// any model has, or a FIFO, whose opening may wait for ever.
  static Expected<FileStamp> of(const std::string &Path,
                                Folders Allowed = Folders::Refused);

  /// Of several files, no folders; one that is not there is told from one that
  /// is.
  static Expected<FileStamp> ofParts(const std::vector<std::string> &Paths);

  friend bool operator==(const FileStamp &, const FileStamp &) = default;

private:
  Error add(const std::string &Path, Folders Allowed);
  Error addFolder(const std::string &Path);

  /// Device, inode, size, seconds and nanoseconds of each file, in the order
  /// of their names.
  std::vector<std::array<std::uint64_t, 5>> Files;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FILESTAMP_H
