//===- Posix.h - The few system calls that need care ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Owned file descriptors, and the system calls that transports share: pipes,
/// process descriptors, Unix socket addresses.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_POSIX_H
#define MLBRIDGE_LIB_SUPPORT_POSIX_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"

#include <cstddef>
#include <memory>
#include <string>
#include <sys/types.h>
#include <utility>

namespace MLBridge::posix {

/// Owns a file descriptor. Every descriptor of this library is close-on-exec:
/// a peer's death must not be hidden by a child that inherited our end.
///
/// It is none of 0, 1 and 2, even where the host has closed these: a host that
/// prints would write into it.
class UniqueFD {
public:
  UniqueFD() = default;
  /// Takes \p FD over; -1 is none. Of 0 to 2 it keeps a duplicate, or none,
  /// with errno set, where there is no other number.
  explicit UniqueFD(int FD)
      : FD(FD < 0 || FD > 2 ? FD : moveAboveStandard(FD)) {}
  UniqueFD(UniqueFD &&Other) noexcept : FD(std::exchange(Other.FD, -1)) {}
  UniqueFD &operator=(UniqueFD &&Other) noexcept {
    std::swap(FD, Other.FD);
    return *this;
  }
  ~UniqueFD();

  int get() const { return FD; }
  explicit operator bool() const { return FD >= 0; }
  void reset() { *this = UniqueFD(); }
  /// Leaves the descriptor to the caller.
  int release() { return std::exchange(FD, -1); }

private:
  static int moveAboveStandard(int FD);

  int FD = -1;
};

struct Pipe {
  UniqueFD Read;
  UniqueFD Write;
};
/// A non-blocking pipe.
Expected<Pipe> makePipe();
/// The same for messages: as large as this user may have.
Expected<Pipe> makeLargePipe();
/// Lets a process of another user open \p End anew, once it has been given it:
/// openOwnPipeEnd() in a compiler, where root runs the model. Nobody else can,
/// since a pipe has no name.
Error letOthersOpen(int End);

/// The end of a pipe that a peer has handed over as \p Received, opened anew:
/// its flags are then this process's own, while those of \p Received are the
/// peer's as well, which could make reads and writes block. \p Mode is O_RDONLY
/// or O_WRONLY. Malformed, in words that begin with \p What, if it is no such
/// end.
Expected<UniqueFD> openOwnPipeEnd(const UniqueFD &Received, int Mode,
                                  const std::string &What);

/// The other end of the pipe whose end to write to is \p Write.
Expected<UniqueFD> openOtherPipeEnd(const UniqueFD &Write,
                                    const std::string &What);

/// Asks for a 1 MiB buffer: fewer wake-ups for big messages. Unprivileged users
/// may be refused past a limit (fs.pipe-user-pages-soft); that costs speed
/// only.
void enlargePipe(int FD);

/// A descriptor that becomes readable when the process that is connected to
/// \p Socket ends; none where the kernel cannot say.
UniqueFD processOfPeer(int Socket, pid_t &Pid);

/// Whether the process that is connected to \p Socket has ended, though another
/// one holds its end: a child that it has forked. A listening socket is that of
/// the process that called listen(2). False where the kernel cannot say.
bool peerHasEnded(int Socket);

/// Whether that process runs as this user or as root: anybody may put a socket
/// or a FIFO into /tmp, and whoever answers decides what is compiled.
bool isTrustedPeer(int Socket);
/// The same of who has made the file behind a descriptor.
bool isTrustedFile(int FD);

/// The address of a Unix socket at a path of any length: sun_path holds 107
/// bytes only, so longer paths go through a descriptor of their directory.
class SocketAddress {
public:
  static Expected<SocketAddress> create(const std::string &Path);
  int bind(int Socket) const;
  int connect(int Socket) const;

private:
  std::string Path;
  UniqueFD Directory;
};

/// What a path is, in words, for messages: "a FIFO", "a regular file".
std::string describeFile(const std::string &Path);
enum class FileKind { Missing, Fifo, Socket, Other };
/// An error where nothing can be at \p Path, such as a name that is too long.
Expected<FileKind> fileKind(const std::string &Path);
/// For messages about a path that has been looked at before.
bool isSocket(const std::string &Path);
bool isFifo(const std::string &Path);

/// The directory that \p Path is in.
std::string parentOf(const std::string &Path);

/// An identity that survives renaming and betrays replacement.
struct FileIdentity {
  dev_t Device = 0;
  ino_t Inode = 0;
  /// Who took it: a child that was forked off does not own what its parent has
  /// made.
  pid_t Process = 0;
  static FileIdentity ofPath(const std::string &Path);
  static FileIdentity ofDescriptor(int FD);
  bool isSameAs(const FileIdentity &Other) const {
    return Inode != 0 && Device == Other.Device && Inode == Other.Inode;
  }
};
/// \p Path from the root: it stays the same file's when a policy changes the
/// working directory.
std::string absolutePath(const std::string &Path);
/// Removes \p Path if it still is the file of that identity, and this process
/// has taken that.
void unlinkIfSame(const std::string &Path, const FileIdentity &Identity);

/// How many descriptors this process may still open; counts up to \p AtMost.
/// It opens no more than two at a time itself, so that other threads find
/// theirs.
std::size_t countFreeDescriptors(std::size_t AtMost);

/// "30 s", "50 ms".
std::string formatDuration(Duration D);

} // namespace MLBridge::posix

#endif // MLBRIDGE_LIB_SUPPORT_POSIX_H
