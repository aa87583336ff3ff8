//===- gRPCTransport.h - The compiler's end of gRPC -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's end of a session over gRPC, without a runner. In the
/// component MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// The PEM files of a TLS connection, read when it is made. If all are empty,
/// the connection is not encrypted.
struct gRPCCredentials {
  /// The authorities that must have signed the peer's certificate. A server
  /// that sets them requires a certificate from each client (mTLS).
  std::string Authorities;
  /// This side's certificate (chain) and its private key; both or neither. A
  /// TLS server needs them; a client needs them if the server requires a
  /// certificate.
  std::string Certificate, Key;

  bool empty() const {
    return Authorities.empty() && Certificate.empty() && Key.empty();
  }
};

/// The options of a gRPC transport.
struct gRPCOptions : TransportOptions {
  enum class Call {
    Stream, ///< One bidirectional stream per session: `session`.
    Unary,  ///< One call per request: `getAdvice`.
  };
  Call Style = Call::Stream;
  gRPCCredentials Credentials;
  /// How often a silent peer is pinged, so that a dead connection is noticed
  /// even if the wait has no deadline.
  Duration Keepalive = std::chrono::seconds(10);
};

/// Creates the transport of gRPCModelRunner, for your own
/// InterProcessModelRunner. \p Address is `host:port`, or `unix:PATH` for a
/// socket of this machine.
std::unique_ptr<Transport> createGRPCTransport(std::string Address,
                                               gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
