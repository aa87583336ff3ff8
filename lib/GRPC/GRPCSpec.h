//===- GRPCSpec.h - gRPC's addresses and options in specs -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parts that client specs and server specs have in common: the addresses
/// `grpc://HOST:PORT` and `grpc+unix:PATH`, TLS and limits.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSPEC_H
#define MLBRIDGE_LIB_GRPC_GRPCSPEC_H

#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

#include <string>

namespace MLBridge::GRPC {

/// Returns the address in \p Spec as `host:port` or `unix:PATH`. Returns an
/// InvalidArgument error if \p Spec contains no address.
Expected<std::string> addressOf(const ModelSpec &Spec);

/// Parses the options `tls`, `cert` and `key`, without reading the files.
Expected<gRPCCredentials> credentialsOf(const ModelSpec &Spec);

/// Converts the address `host:port` or `unix:PATH` to the form of
/// Listener::name().
std::string nameOf(const std::string &Address);

struct ServerSpec {
  std::string Address;
  gRPCCredentials Credentials;
  std::size_t MaxMessage;
  std::size_t MaxSessions;
  /// The file to which the server writes its address. Used only in training.
  std::string Announce;

  /// Parses \p Text. Returns an InvalidArgument error if \p Text is wrong. \p
  /// MaxMessage and \p MaxSessions are used if \p Text does not set them. In
  /// training, there is only one session. The server then also accepts the
  /// trainer's options and ignores them, so that both ends can use the same
  /// spec.
  static Expected<ServerSpec> parse(std::string_view Text,
                                    std::size_t MaxMessage,
                                    std::size_t MaxSessions,
                                    bool IsTraining = false);
};

/// Returns the name of the default SerDes. This is "protobuf", which stock
/// clients and servers use, if \p Formats contains it. Otherwise, it is
/// "bitstream".
std::string_view defaultSerDes(const SerDesFactory &Formats);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSPEC_H
