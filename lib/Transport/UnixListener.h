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

/// Connects to the socket at \p Path, of \p Type. Returns an empty descriptor
/// if the socket is missing or no process listens: the server may still start.
/// System if \p Path is another kind of file or connect(2) fails otherwise.
Expected<posix::UniqueFD> tryConnect(const std::string &Path,
                                     int Type = SOCK_SEQPACKET);

/// Whether the process that listened at \p Path has ended while a child that it
/// forked still holds the socket and the parent's other descriptors.
bool isOrphaned(const std::string &Path, int Type = SOCK_SEQPACKET);

class UnixListener {
public:
  /// Listens at \p Path, mode 0600. Replaces the socket of a dead server; a
  /// live server there is an InvalidArgument.
  static Expected<UnixListener> listen(const std::string &Path,
                                       int Type = SOCK_SEQPACKET);
  UnixListener(UnixListener &&) = default;
  /// Removes the socket, except in a forked child.
  ~UnixListener();

  int socket() const { return Listener.get(); }
  /// Accepts a connection without blocking; on failure, returns an empty
  /// descriptor and sets errno.
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
