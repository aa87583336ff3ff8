//===- GRPCSpec.h - gRPC's addresses and options in specs -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the specs of both ends have in common: `grpc://HOST:PORT` and
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

/// `host:port`, or `unix:PATH`.
Expected<std::string> addressOf(const ModelSpec &Spec);

/// The options `tls`, `cert` and `key`. The files are not looked at.
Expected<gRPCCredentials> credentialsOf(const ModelSpec &Spec);

/// `host:port` or `unix:PATH` as Listener::name() writes it.
std::string nameOf(const std::string &Address);

/// Where and how a server listens.
struct ServerSpec {
  std::string Address;
  gRPCCredentials Credentials;
  std::size_t MaxMessage;
  std::size_t MaxSessions;
  /// The file that tells where it listens, in training.
  std::string Announce;

  /// \p MaxMessage and \p MaxSessions hold where the spec does not say.
  /// In training, there is one session, and the options of the trainer's end
  /// are let through: both ends may be told the same spec.
  static Expected<ServerSpec> parse(std::string_view Text,
                                    std::size_t MaxMessage,
                                    std::size_t MaxSessions,
                                    bool IsTraining = false);
};

/// What stock clients and servers speak, if it is among \p Formats.
std::string_view defaultSerDes(const SerDesFactory &Formats);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSPEC_H
