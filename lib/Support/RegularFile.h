//===- RegularFile.h - Files that can be read to their end ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opening a file that a user named. A path may lead to a FIFO, whose opening
/// waits for another process, or to a device such as /dev/zero, whose reading
/// never ends.
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

/// An open file, and what it was when it was opened.
struct RegularFile {
  posix::UniqueFD FD;
  struct stat Status = {};
};

/// What else than a regular file will do.
enum class AlsoAllowed {
  Nothing,
  /// /dev/null and the like: for files that are written only.
  CharacterDevice,
};

/// Opens \p Path by open(2)'s \p Flags; never waits. System where it cannot be
/// opened, InvalidArgument where it is no regular file. \p What is what failed,
/// for the message: "cannot create the log 'x'".
Expected<RegularFile> openRegularFile(const std::string &Path,
                                      const std::string &What,
                                      int Flags = O_RDONLY,
                                      AlsoAllowed Also = AlsoAllowed::Nothing);

/// All that is in \p Path, which is at most \p MaxBytes: Malformed where it is
/// more, and as openRegularFile().
Expected<std::string> readRegularFile(const std::string &Path,
                                      const std::string &What,
                                      std::size_t MaxBytes);

/// For callers that have called stat() themselves: an InvalidArgument unless
/// \p Status is that of a regular file.
Error expectRegularFile(const struct stat &Status, const std::string &What);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_REGULARFILE_H
