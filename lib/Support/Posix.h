//===- Posix.h - Wrappers of system calls -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines UniqueFD, which owns a file descriptor, and the system calls that
/// transports share: pipes, process descriptors and Unix socket addresses.
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

/// Owns a file descriptor. Every descriptor of this library is close-on-exec.
/// Otherwise, a child program could inherit the end of a channel and keep it
/// open, and the peer would not notice that the parent has died.
///
/// The descriptor's number is always greater than 2, even if the host program
/// has closed its standard descriptors. Otherwise, output of the program could
/// be written to a descriptor of this library.
class UniqueFD {
public:
  UniqueFD() = default;
  /// Takes ownership of \p FD. -1 means that the object is empty. If \p FD is
  /// 0, 1 or 2, replaces it by a duplicate with a greater number. If this
  /// fails, the object is empty and errno is set.
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
/// Creates a non-blocking pipe and calls enlargePipe().
Expected<Pipe> makeLargePipe();
/// Permits a peer that runs as another user to reopen \p End with
/// openOwnPipeEnd(). For example, root may run the model for a user's compiler.
/// Other processes cannot open \p End, because a pipe has no name.
Error letOthersOpen(int End);

/// Reopens the end of a pipe that a peer sent as \p Received. The peer shares
/// the flags of \p Received, so the peer could make reads and writes of
/// \p Received block. The result does not have this problem. \p Mode is
/// O_RDONLY or O_WRONLY. Returns Malformed if \p Received is not the end of a
/// pipe with this mode. Messages contain \p What.
Expected<UniqueFD> openOwnPipeEnd(const UniqueFD &Received, int Mode,
                                  const std::string &What);

/// Opens the read end of the pipe whose write end is \p Write. Messages contain
/// \p What.
Expected<UniqueFD> openOtherPipeEnd(const UniqueFD &Write,
                                    const std::string &What);

/// Requests a buffer of 1 MiB, which saves wake-ups for large messages. Ignores
/// a failure, because a small buffer is only slower. The kernel refuses the
/// buffer if the user's pipes exceed a limit (fs.pipe-user-pages-soft).
void enlargePipe(int FD);

/// Returns a descriptor that becomes readable when the process connected to
/// \p Socket ends. Returns an empty descriptor if the kernel does not support
/// this. Sets \p Pid to the ID of the process, or to 0 if it is unknown.
UniqueFD processOfPeer(int Socket, pid_t &Pid);

/// Returns whether the process connected to \p Socket has ended. The socket
/// alone does not show this if a forked child keeps the other end open. If this
/// process has called connect(2), checks the process that called listen(2),
/// even if another process accepts the connection. Returns false if the answer
/// is unknown.
bool peerHasEnded(int Socket);

/// Returns whether the process connected to \p Socket runs as this user or as
/// root. This check is necessary because any user can create a socket or a FIFO
/// in /tmp, and the peer influences the compiler's output.
bool isTrustedPeer(int Socket);
/// Returns whether the file of a descriptor belongs to this user or to root.
bool isTrustedFile(int FD);

/// The address of a Unix socket at a path of any length. sun_path has room for
/// only 107 bytes, so a longer path is replaced by a path through a descriptor
/// of its directory.
class SocketAddress {
public:
  static Expected<SocketAddress> create(const std::string &Path);
  int bind(int Socket) const;
  int connect(int Socket) const;

private:
  std::string Path;
  UniqueFD Directory;
};

/// Returns the kind of file at \p Path for messages, such as "a FIFO" or "a
/// regular file".
std::string describeFile(const std::string &Path);
enum class FileKind { Missing, Fifo, Socket, Other };
/// Returns the kind of file at \p Path. Returns System if stat(2) fails, unless
/// the file is missing.
Expected<FileKind> fileKind(const std::string &Path);
/// These functions return whether \p Path is a socket or a FIFO, for messages.
/// They return false if the kind of file is unknown.
bool isSocket(const std::string &Path);
bool isFifo(const std::string &Path);

/// Returns the directory of \p Path with a trailing slash, or "." if \p Path
/// contains no slash.
std::string parentOf(const std::string &Path);

/// Identifies a file. A renamed file keeps its identity. A file that replaces
/// another file has a different identity.
struct FileIdentity {
  dev_t Device = 0;
  ino_t Inode = 0;
  /// The process that created this object. It is stored because a forked child
  /// must not remove its parent's files.
  pid_t Process = 0;
  static FileIdentity ofPath(const std::string &Path);
  static FileIdentity ofDescriptor(int FD);
  bool isSameAs(const FileIdentity &Other) const {
    return Inode != 0 && Device == Other.Device && Inode == Other.Inode;
  }
};
/// Returns \p Path as an absolute path. It stays valid if a policy changes the
/// working directory.
std::string absolutePath(const std::string &Path);
/// Removes the file \p Path if it still has \p Identity and this process
/// created \p Identity.
void unlinkIfSame(const std::string &Path, const FileIdentity &Identity);

/// Returns the number of descriptors that this process can still open, or
/// \p AtMost if it can open more. Opens at most two descriptors at a time, so
/// that other threads can still open descriptors.
std::size_t countFreeDescriptors(std::size_t AtMost);

/// Returns a duration as text, such as "30 s" or "50 ms".
std::string formatDuration(Duration D);

} // namespace MLBridge::posix

#endif // MLBRIDGE_LIB_SUPPORT_POSIX_H
