//===- RegularFile.cpp - Opening regular files ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/RegularFile.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

using namespace MLBridge;

static const char *kindOf(mode_t Mode) {
  switch (Mode & S_IFMT) {
  case S_IFDIR:
    return "a folder";
  case S_IFIFO:
    return "a FIFO";
  case S_IFSOCK:
    return "a socket";
  case S_IFCHR:
  case S_IFBLK:
    return "a device";
  default:
    return "a file of another kind";
  }
}

Error MLBridge::expectRegularFile(const struct stat &Status,
                                  const std::string &What) {
  if (S_ISREG(Status.st_mode))
    return Error::success();
  return {ErrorCode::InvalidArgument,
          What + ": expected a regular file, found " + kindOf(Status.st_mode)};
}

Expected<RegularFile> MLBridge::openRegularFile(const std::string &Path,
                                                const std::string &What,
                                                int Flags, AlsoAllowed Also) {
  constexpr mode_t ModeOfNew = 0666; // The umask reduces this mode.
  RegularFile File;
  File.FD = posix::UniqueFD(::open(
      Path.c_str(), Flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, ModeOfNew));
  if (!File.FD) {
    const int Why = errno;
    // Report the kind of file if the file is a folder, a FIFO without a reader
    // or a socket. open(2) returns one of these codes for such a file.
    if ((Why == EISDIR || Why == ENXIO) &&
        ::stat(Path.c_str(), &File.Status) == 0)
      if (Error E = expectRegularFile(File.Status, What))
        return E;
    return Error::fromErrno(Why, What);
  }
  if (::fstat(File.FD.get(), &File.Status) != 0)
    return Error::fromErrno(errno, What);
  if (S_ISCHR(File.Status.st_mode) && Also == AlsoAllowed::CharacterDevice)
    return File;
  if (Error E = expectRegularFile(File.Status, What))
    return E;
  return File;
}

Expected<std::string> MLBridge::readRegularFile(const std::string &Path,
                                                const std::string &What,
                                                std::size_t MaxBytes) {
  Expected<RegularFile> File = openRegularFile(Path, What);
  if (!File)
    return File.takeError();
  // Read until the end of the file. The size from stat(2) is not sufficient,
  // because files in /proc do not report their size, and any file may grow.
  constexpr std::size_t Piece = std::size_t(64) << 10;
  std::string Text;
  for (;;) {
    const std::size_t Size = Text.size();
    Text.resize(Size + std::min(Piece, MaxBytes + 1 - Size));
    const ssize_t Read =
        ::read(File->FD.get(), Text.data() + Size, Text.size() - Size);
    if (Read < 0 && errno != EINTR)
      return Error::fromErrno(errno, What);
    Text.resize(Size + static_cast<std::size_t>(std::max<ssize_t>(Read, 0)));
    if (Read == 0)
      return Text;
    if (Text.size() > MaxBytes)
      return Error(ErrorCode::Malformed, What + ": expected at most " +
                                             std::to_string(MaxBytes) +
                                             " bytes, found more");
  }
}
