//===- GRPCAcceptor.h - Connections for a gRPC server -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Acceptor: the sockets of a gRPC server, and the thread that accepts their
/// connections. gRPC's own listener would stop forever once the process runs
/// out of descriptors.
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
  /// The handlers of new connections; called by the acceptor's thread.
  struct Handlers {
    std::function<void(posix::UniqueFD)> Serve;
    /// Refuses a connection over the limit of descriptors.
    std::function<void(posix::UniqueFD)> Refuse;
  };

  /// Listens at \p Address (`host:port` or `unix:PATH`). Connections wait until
  /// start(). A connection ends if its peer does not acknowledge data for
  /// \p PeerTimeout. System if it cannot listen; InvalidArgument if another
  /// server listens at the socket.
  static Expected<std::unique_ptr<Acceptor>> listen(const std::string &Address,
                                                    Duration PeerTimeout);
  /// Starts the thread that accepts connections.
  void start(Handlers Handle);
  /// Stops accepting connections, and joins the thread.
  void stop();
  ~Acceptor() { stop(); }

  /// The address, with the actual port in place of port 0.
  const std::string &address() const { return Address; }

private:
  Acceptor() = default;
  Error listenAtPort(std::string Host, std::string Port, Duration PeerTimeout);
  void run(const Handlers &Handle);
  /// Accepts the waiting connections of \p Socket; false if descriptors or
  /// memory have run out.
  bool acceptAll(int Socket, const Handlers &Handle) const;

  std::string Address;
  std::optional<UnixListener> Local;
  std::vector<posix::UniqueFD> Sockets;
  /// Closing the write end stops the thread.
  posix::Pipe Stop;
  std::thread Thread;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTOR_H
