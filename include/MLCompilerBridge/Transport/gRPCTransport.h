//===- gRPCTransport.h - A gRPC channel to a model --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's end of a session over gRPC, without a runner around it. In
/// the component MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// The PEM files of a TLS connection, read when it is made. Without any of
/// them, it is in the clear.
struct gRPCCredentials {
  /// The authorities that may have signed the peer's certificate. A server
  /// that has some demands a certificate of each client (mTLS).
  std::string Authorities;
  /// Our own certificate (chain) and its private key; both or neither. A
  /// server needs them, a client does where the server demands one.
  std::string Certificate, Key;

  bool empty() const {
    return Authorities.empty() && Certificate.empty() && Key.empty();
  }
};

/// What a gRPC transport can be told beside TransportOptions.
struct gRPCOptions : TransportOptions {
  enum class Call {
    Stream, ///< One bidirectional stream a session: `session`.
    Unary,  ///< A call for each request: `getAdvice`.
  };
  Call Style = Call::Stream;
  gRPCCredentials Credentials;
  /// How often a silent peer is asked whether it is still there, so that a
  /// connection that died without a word is noticed where no deadline ends the
  /// wait.
  Duration Keepalive = std::chrono::seconds(10);
};

/// For an InterProcessModelRunner of your own; gRPCModelRunner is one with it.
/// \p Address is `host:port`, or `unix:PATH` for a socket of this machine.
std::unique_ptr<Transport> createGRPCTransport(std::string Address,
                                               gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
