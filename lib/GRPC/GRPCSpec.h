//===- GRPCSpec.h - gRPC's addresses and options in specs -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The common parts of client and server specs: `grpc://HOST:PORT` and
/// `grpc+unix:PATH`, with TLS and limits.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSPEC_H
#define MLBRIDGE_LIB_GRPC_GRPCSPEC_H

#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

#include <string>

namespace MLBridge::GRPC {

/// Returns `host:port` or `unix:PATH`; InvalidArgument if \p Spec has neither.
Expected<std::string> addressOf(const ModelSpec &Spec);

/// Parses the options `tls`, `cert` and `key`, without reading the files.
Expected<gRPCCredentials> credentialsOf(const ModelSpec &Spec);

/// `host:port` or `unix:PATH` as Listener::name() writes it.
std::string nameOf(const std::string &Address);

/// The spec of a server.
struct ServerSpec {
  std::string Address;
  gRPCCredentials Credentials;
  std::size_t MaxMessage;
  std::size_t MaxSessions;
  /// In training, the file to which the server writes its address.
  std::string Announce;

  /// Parses \p Text; a mistake is an InvalidArgument. \p MaxMessage and
  /// \p MaxSessions are defaults. In training, there is one session, and the
  /// trainer's options are accepted and ignored, so that both ends can use the
  /// same spec.
  static Expected<ServerSpec> parse(std::string_view Text,
                                    std::size_t MaxMessage,
                                    std::size_t MaxSessions,
                                    bool IsTraining = false);
};

/// The SerDes of stock clients and servers, "protobuf", if \p Formats has it;
/// otherwise "bitstream".
std::string_view defaultSerDes(const SerDesFactory &Formats);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSPEC_H
