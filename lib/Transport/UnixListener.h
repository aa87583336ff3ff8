//===- UnixListener.h - A Unix socket that listens --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// UnixListener: a Unix socket at a path, where peers of this user connect.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_UNIXLISTENER_H
#define MLBRIDGE_LIB_TRANSPORT_UNIXLISTENER_H

#include "MLCompilerBridge/Error.h"
#include "Support/Posix.h"

#include <string>
#include <sys/socket.h>

namespace MLBridge {

/// Connects to the socket at \p Path, of \p Type. A missing or stale one is no
/// error, only an empty descriptor: the server may still start.
Expected<posix::UniqueFD> tryConnect(const std::string &Path,
                                     int Type = SOCK_SEQPACKET);

/// Whether the process that listened at \p Path has ended, and a child that it
/// has forked still holds the socket, and with it whatever else it held.
bool isOrphaned(const std::string &Path, int Type = SOCK_SEQPACKET);

class UnixListener {
public:
  /// Listens at \p Path, mode 0600. A socket that a dead server left is taken
  /// over; a live server there is an error.
  static Expected<UnixListener> listen(const std::string &Path,
                                       int Type = SOCK_SEQPACKET);
  UnixListener(UnixListener &&) = default;
  /// Removes the socket, unless this is a child that was forked.
  ~UnixListener();

  int socket() const { return Listener.get(); }
  /// The next connection; an empty descriptor where there is none, and errno.
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
