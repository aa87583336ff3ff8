//===- gRPCTransport.h - The compiler's end of a gRPC session ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the compiler's end of a session through gRPC, for use without a
/// gRPCModelRunner. This header belongs to the component
/// MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// The names of the PEM files for a TLS connection. The files are read when the
/// connection is opened. If all names are empty, the connection is not
/// encrypted.
struct gRPCCredentials {
  /// The authorities, one of which must have signed the peer's certificate. If
  /// a server sets this member, it requires a certificate from each client
  /// (mTLS).
  std::string Authorities;
  /// This side's certificate (chain) and private key. Either both or neither
  /// must be set. A TLS server needs both. A client needs both if the server
  /// requires a certificate.
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
  /// The path of a unary method of the user's own service, such as
  /// "/my.Advisor/Decide". If the path is empty, the transport calls the
  /// methods of mlcompilerbridge.proto. Otherwise, Style must be Unary.
  std::string Method;
  gRPCCredentials Credentials;
  /// The interval between pings to a silent peer. Pings detect a dead
  /// connection even if the wait has no deadline.
  Duration Keepalive = std::chrono::seconds(10);
};

/// Creates the transport that gRPCModelRunner uses. To use it with another
/// SerDes, pass it to an InterProcessModelRunner. \p Address is `host:port`, or
/// `unix:PATH` for a socket on this machine.
std::unique_ptr<Transport> createGRPCTransport(std::string Address,
                                               gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCTRANSPORT_H
