//===- GRPCAcceptor.h - Connections for a gRPC server -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Acceptor: the sockets at which a gRPC server listens, and the thread that
/// accepts connections there. gRPC could do both, but stops to listen for good
/// when the process has no descriptor left for a connection.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCACCEPTOR_H
#define MLBRIDGE_LIB_GRPC_GRPCACCEPTOR_H

#include "MLCompilerBridge/Deadline.h"
#include "Transport/UnixListener.h"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace MLBridge::GRPC {

class Acceptor {
public:
  /// What is done with a connection; called by the acceptor's thread.
  struct Handlers {
    std::function<void(posix::UniqueFD)> Serve;
    /// For one that there is no room for: tells its peer so.
    std::function<void(posix::UniqueFD)> Refuse;
  };

  /// Listens at \p Address (`host:port` or `unix:PATH`). Peers may connect from
  /// now on, and wait until start(). One that does not acknowledge what it was
  /// sent for \p PeerTimeout is gone.
  static Expected<std::unique_ptr<Acceptor>> listen(const std::string &Address,
                                                    Duration PeerTimeout);
  /// Accepts connections, in a thread of its own.
  void start(Handlers Handle);
  /// Accepts no more. The thread has ended when this returns.
  void stop();
  ~Acceptor() { stop(); }

  /// Where it listens, with the port that was picked for port 0.
  const std::string &address() const { return Address; }

private:
  Acceptor() = default;
  Error listenAtPort(std::string Host, std::string Port, Duration PeerTimeout);
  void run(const Handlers &Handle);
  /// Accepts what waits at \p Socket; false when there is no room for more.
  bool acceptAll(int Socket, const Handlers &Handle) const;

  std::string Address;
  std::optional<UnixListener> Local;
  std::vector<posix::UniqueFD> Sockets;
  /// Its end ends the thread.
  posix::Pipe Stop;
  std::thread Thread;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTOR_H
