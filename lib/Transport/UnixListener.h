//===- UnixListener.h - A Unix socket that listens --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// UnixListener: a Unix socket at a path. Only processes of the same user can
/// connect to it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_UNIXLISTENER_H
#define MLBRIDGE_LIB_TRANSPORT_UNIXLISTENER_H

#include "MLCompilerBridge/Error.h"
#include "Support/Posix.h"

#include <string>
#include <sys/socket.h>

namespace MLBridge {

/// Connects to the socket of \p Type at \p Path. Returns an empty descriptor if
/// the socket is missing or no process listens at it. In both cases, a server
/// may still start. Returns a System error if \p Path is not a socket or if
/// connect(2) fails for another reason.
Expected<posix::UniqueFD> tryConnect(const std::string &Path,
                                     int Type = SOCK_SEQPACKET);

/// Returns true if the process that listened at \p Path has ended, but a child
/// that it forked still holds the socket.
bool isOrphaned(const std::string &Path, int Type = SOCK_SEQPACKET);

class UnixListener {
public:
  /// Listens at \p Path with mode 0600. Replaces the socket of a dead server.
  /// Returns an InvalidArgument error if a live server listens at \p Path.
  static Expected<UnixListener> listen(const std::string &Path,
                                       int Type = SOCK_SEQPACKET);
  UnixListener(UnixListener &&) = default;
  /// Removes the socket's path, except in a forked child.
  ~UnixListener();

  int socket() const { return Listener.get(); }
  /// Accepts a connection without blocking. If accept4(2) fails, returns an
  /// empty descriptor and sets errno.
  posix::UniqueFD accept();

private:
  UnixListener(std::string Path, posix::UniqueFD Listener,
               posix::FileIdentity Identity)
      : Path(std::move(Path)), Listener(std::move(Listener)),
        Identity(Identity) {}

  std::string Path;
  posix::UniqueFD Listener;
  posix::FileIdentity Identity;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_UNIXLISTENER_H
