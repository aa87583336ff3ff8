//===- RegularFile.h - Opening regular files --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opening a file that a user named. The path may be a FIFO, where open(2)
/// waits for another process, or a device such as /dev/zero, which has no end.
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

/// The kinds of file accepted besides regular files.
enum class AlsoAllowed {
  Nothing,
  /// /dev/null and similar devices, for files that are only written.
  CharacterDevice,
};

/// Opens \p Path with the \p Flags of open(2); never blocks. System if it
/// cannot be opened, InvalidArgument if it is not a regular file. \p What
/// begins the message: "cannot create the log 'x'".
Expected<RegularFile> openRegularFile(const std::string &Path,
                                      const std::string &What,
                                      int Flags = O_RDONLY,
                                      AlsoAllowed Also = AlsoAllowed::Nothing);

/// Reads all of \p Path. Malformed if it has more than \p MaxBytes; other
/// errors as openRegularFile().
Expected<std::string> readRegularFile(const std::string &Path,
                                      const std::string &What,
                                      std::size_t MaxBytes);

/// Returns an InvalidArgument unless \p Status, from stat(2), is that of a
/// regular file.
Error expectRegularFile(const struct stat &Status, const std::string &What);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_REGULARFILE_H
