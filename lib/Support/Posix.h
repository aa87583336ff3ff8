//===- Posix.h - Wrappers of system calls -----------------------*- C++ -*-===//
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
/// otherwise a child that inherits one end would hide the death of its parent.
///
/// The number is always greater than 2, even if the host has closed the
/// standard descriptors: its output must not go to a descriptor of this
/// library.
class UniqueFD {
public:
  UniqueFD() = default;
  /// Takes ownership of \p FD; -1 means empty. Replaces 0, 1 and 2 with a
  /// duplicate that has a greater number; if that fails, this is empty and
  /// errno is set.
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
  /// Passes ownership of the descriptor to the caller.
  int release() { return std::exchange(FD, -1); }

private:
  static int moveAboveStandard(int FD);

  int FD = -1;
};

struct Pipe {
  UniqueFD Read;
  UniqueFD Write;
};
/// Creates a non-blocking pipe.
Expected<Pipe> makePipe();
/// The same, with the largest buffer that the user's limits allow: see
/// enlargePipe().
Expected<Pipe> makeLargePipe();
/// Lets a peer that runs as another user and receives \p End reopen it with
/// openOwnPipeEnd(), such as a compiler when root runs the model. Other
/// processes cannot open it, since a pipe has no name.
Error letOthersOpen(int End);

/// Reopens the end of a pipe that a peer sent as \p Received. The peer shares
/// the flags of \p Received, so it could make reads and writes of \p Received
/// block, but not reads and writes of the result. \p Mode is O_RDONLY or
/// O_WRONLY. Malformed if \p Received is not such an end; \p What names it in
/// messages.
Expected<UniqueFD> openOwnPipeEnd(const UniqueFD &Received, int Mode,
                                  const std::string &What);

/// Opens the read end of the pipe whose write end is \p Write; \p What names it
/// in messages.
Expected<UniqueFD> openOtherPipeEnd(const UniqueFD &Write,
                                    const std::string &What);

/// Requests a 1 MiB buffer, which saves wake-ups for large messages. Beyond a
/// limit (fs.pipe-user-pages-soft), the kernel may refuse; that only costs
/// speed.
void enlargePipe(int FD);

/// Returns a descriptor that becomes readable when the process connected to
/// \p Socket ends; empty if the kernel does not support it. Sets \p Pid to the
/// process, or to 0 if it is unknown.
UniqueFD processOfPeer(int Socket, pid_t &Pid);

/// Whether the process connected to \p Socket has ended although a child that
/// it forked keeps its end open. For a listening socket, that is the process
/// that called listen(2). False if the kernel cannot tell.
bool peerHasEnded(int Socket);

/// Whether the process connected to \p Socket runs as this user or as root. Any
/// user can create a socket or a FIFO in /tmp, and the peer influences the
/// compiler's output.
bool isTrustedPeer(int Socket);
/// Whether the file behind a descriptor belongs to this user or to root.
bool isTrustedFile(int FD);

/// The address of a Unix socket at a path of any length. sun_path holds only
/// 107 bytes, so longer paths are resolved through a descriptor of their
/// directory.
class SocketAddress {
public:
  static Expected<SocketAddress> create(const std::string &Path);
  int bind(int Socket) const;
  int connect(int Socket) const;

private:
  std::string Path;
  UniqueFD Directory;
};

/// The kind of file at \p Path, for messages: "a FIFO", "a regular file".
std::string describeFile(const std::string &Path);
enum class FileKind { Missing, Fifo, Socket, Other };
/// The kind of file at \p Path. System if stat(2) fails for another reason than
/// a missing file, such as a name that is too long.
Expected<FileKind> fileKind(const std::string &Path);
/// Whether \p Path is a file of that kind, for messages; false if unknown.
bool isSocket(const std::string &Path);
bool isFifo(const std::string &Path);

/// The directory of \p Path, with a trailing slash, or ".".
std::string parentOf(const std::string &Path);

/// Identifies a file: unchanged by renaming, different after replacement.
struct FileIdentity {
  dev_t Device = 0;
  ino_t Inode = 0;
  /// The process that took this identity: a forked child does not own its
  /// parent's files.
  pid_t Process = 0;
  static FileIdentity ofPath(const std::string &Path);
  static FileIdentity ofDescriptor(int FD);
  bool isSameAs(const FileIdentity &Other) const {
    return Inode != 0 && Device == Other.Device && Inode == Other.Inode;
  }
};
/// \p Path as an absolute path, which stays valid if a policy changes the
/// working directory.
std::string absolutePath(const std::string &Path);
/// Removes \p Path if it is still the file with \p Identity and this process
/// took that identity.
void unlinkIfSame(const std::string &Path, const FileIdentity &Identity);

/// Counts, up to \p AtMost, the descriptors that this process may still open.
/// Opens at most two at a time, to leave the others to other threads.
std::size_t countFreeDescriptors(std::size_t AtMost);

/// Formats a duration: "30 s", "50 ms".
std::string formatDuration(Duration D);

} // namespace MLBridge::posix

#endif // MLBRIDGE_LIB_SUPPORT_POSIX_H
