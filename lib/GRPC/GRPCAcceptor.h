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
/// connections. gRPC's own listener is not used, because it stops forever once
/// the process runs out of descriptors.
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
  /// The handlers of new connections. The acceptor's thread calls them.
  struct Handlers {
    std::function<void(posix::UniqueFD)> Serve;
    /// Refuses a connection because the process has too few free descriptors.
    std::function<void(posix::UniqueFD)> Refuse;
  };

  /// Listens at \p Address, which is `host:port` or `unix:PATH`. Connections
  /// wait until start() is called. A connection ends if its peer does not
  /// acknowledge data for \p PeerTimeout. Returns a System error if listening
  /// fails, or an InvalidArgument error if another server listens at the Unix
  /// socket.
  static Expected<std::unique_ptr<Acceptor>> listen(const std::string &Address,
                                                    Duration PeerTimeout);
  void start(Handlers Handle);
  /// Stops accepting connections, and joins the thread.
  void stop();
  ~Acceptor() { stop(); }

  /// Returns the address. Port 0 is replaced by the port that the system chose.
  const std::string &address() const { return Address; }

private:
  Acceptor() = default;
  Error listenAtPort(std::string Host, std::string Port, Duration PeerTimeout);
  void run(const Handlers &Handle);
  /// Accepts the waiting connections of \p Socket. Returns false if descriptors
  /// or memory have run out.
  bool acceptAll(int Socket, const Handlers &Handle) const;

  std::string Address;
  std::optional<UnixListener> Local;
  std::vector<posix::UniqueFD> Sockets;
  /// A pipe that stops the thread: stop() closes the write end.
  posix::Pipe Stop;
  std::thread Thread;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTOR_H
