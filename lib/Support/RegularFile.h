//===- RegularFile.h - Opening regular files --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opens files whose paths a user has chosen. Such a path may name a FIFO, for
/// which open(2) waits for another process, or a device such as /dev/zero,
/// which has no end.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_REGULARFILE_H
#define MLBRIDGE_LIB_SUPPORT_REGULARFILE_H

#include "MLCompilerBridge/Error.h"
#include "Support/Posix.h"

#include <fcntl.h>
#include <string>
#include <sys/stat.h>

namespace MLBridge {

/// An open file, and its status when it was opened.
struct RegularFile {
  posix::UniqueFD FD;
  struct stat Status = {};
};

/// The kinds of files that are accepted in addition to regular files.
enum class AlsoAllowed {
  Nothing,
  /// Character devices such as /dev/null. Useful for files that are only
  /// written.
  CharacterDevice,
};

/// Opens \p Path with the \p Flags of open(2). Never blocks. Returns System if
/// the file cannot be opened, or InvalidArgument if it is not a regular file.
/// Messages begin with \p What, such as "cannot create the log 'x'".
Expected<RegularFile> openRegularFile(const std::string &Path,
                                      const std::string &What,
                                      int Flags = O_RDONLY,
                                      AlsoAllowed Also = AlsoAllowed::Nothing);

/// Reads the whole file \p Path. Returns the error of openRegularFile(), or
/// Malformed if the file has more than \p MaxBytes bytes.
Expected<std::string> readRegularFile(const std::string &Path,
                                      const std::string &What,
                                      std::size_t MaxBytes);

/// Returns InvalidArgument if \p Status, a result of stat(2), does not describe
/// a regular file.
Error expectRegularFile(const struct stat &Status, const std::string &What);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_REGULARFILE_H
