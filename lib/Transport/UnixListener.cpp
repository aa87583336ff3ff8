//===- UnixListener.cpp - A Unix socket that listens ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/UnixListener.h"

#include "Support/PrintableText.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

//===----------------------------------------------------------------------===//
// Clients
//===----------------------------------------------------------------------===//

/// Connects to \p Path. Returns an empty descriptor if no process listens at
/// \p Path.
static Expected<UniqueFD> connectTo(const std::string &Path, int Type) {
  UniqueFD Socket(::socket(AF_UNIX, Type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!Socket)
    return Error::fromErrno(errno, "cannot create a socket");
  Expected<posix::SocketAddress> Address = posix::SocketAddress::create(Path);
  if (!Address)
    return Address.takeError();
  if (Address->connect(Socket.get()) == 0)
    return Socket;
  switch (errno) {
  case ENOENT:       // The socket was removed after the check.
  case ECONNREFUSED: // A dead server has left the socket.
  case EAGAIN:       // The accept queue is full.
  case EINTR:
    return UniqueFD();
  default:
    return Error::fromErrno(errno, "cannot connect to " + printable(Path));
  }
}

bool MLBridge::isOrphaned(const std::string &Path, int Type) {
  Expected<UniqueFD> Socket = connectTo(Path, Type);
  return Socket && *Socket && posix::peerHasEnded(Socket->get());
}

Expected<UniqueFD> MLBridge::tryConnect(const std::string &Path, int Type) {
  Expected<posix::FileKind> Kind = posix::fileKind(Path);
  if (!Kind)
    return Kind.takeError();
  if (*Kind == posix::FileKind::Missing)
    return UniqueFD();
  if (*Kind != posix::FileKind::Socket)
    return Error(ErrorCode::System, printable(Path) +
                                        ": expected a socket, found " +
                                        posix::describeFile(Path));
  Expected<UniqueFD> Socket = connectTo(Path, Type);
  if (Socket && *Socket && posix::peerHasEnded(Socket->get()))
    return UniqueFD();
  return Socket;
}

//===----------------------------------------------------------------------===//
// Servers
//===----------------------------------------------------------------------===//

/// Locks the directory of \p Path. Without the lock, two servers could replace
/// a dead server's socket at the same time, and one server could remove the new
/// socket of the other server. A lock on the directory leaves no lock file
/// behind.
static UniqueFD lockDirectoryOf(const std::string &Path) {
  UniqueFD Directory(::open(posix::parentOf(Path).c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Continue without the lock after 1 s. Servers hold it for microseconds, so a
  // longer wait means that another program has locked the directory.
  for (int Attempt = 0; Directory && Attempt < 200; ++Attempt) {
    if (::flock(Directory.get(), LOCK_EX | LOCK_NB) == 0)
      break;
    ::poll(nullptr, 0, 5);
  }
  return Directory;
}

Expected<UnixListener> UnixListener::listen(const std::string &Path, int Type) {
  Expected<posix::SocketAddress> Address = posix::SocketAddress::create(Path);
  if (!Address)
    return Address.takeError();
  UniqueFD Lock = lockDirectoryOf(Path);
  Expected<posix::FileKind> Kind = posix::fileKind(Path);
  if (!Kind)
    return Kind.takeError();
  if (*Kind == posix::FileKind::Socket) {
    Expected<UniqueFD> Other = tryConnect(Path, Type);
    if (!Other)
      return Other.takeError();
    if (*Other)
      return Error(ErrorCode::InvalidArgument,
                   "another model already serves " + printable(Path) +
                       "; stop it or choose another name");
    ::unlink(Path.c_str());
  } else if (*Kind != posix::FileKind::Missing) {
    return Error(ErrorCode::System, printable(Path) +
                                        ": expected a socket or nothing, "
                                        "found " +
                                        posix::describeFile(Path) +
                                        "; remove it or choose another name");
  }

  UniqueFD Listener(::socket(AF_UNIX, Type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!Listener)
    return Error::fromErrno(errno, "cannot create a socket");
  // Set the mode before bind(2). On Linux, the mode of the descriptor becomes
  // the mode of the file. Therefore, other users can never connect.
  if (::fchmod(Listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      Address->bind(Listener.get()) != 0 ||
      ::listen(Listener.get(), SOMAXCONN) != 0)
    return Error::fromErrno(errno, "cannot listen at " + printable(Path));
  posix::FileIdentity Identity = posix::FileIdentity::ofPath(Path);
  return UnixListener(posix::absolutePath(Path), std::move(Listener), Identity);
}

UnixListener::~UnixListener() {
  if (Listener)
    posix::unlinkIfSame(Path, Identity);
}

UniqueFD UnixListener::accept() {
  return UniqueFD(::accept4(Listener.get(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
}
