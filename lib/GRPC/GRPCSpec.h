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

/// Returns the path of the method that the options `service` and `method` name,
/// such as "/my.Advisor/Decide". Returns an empty string if \p Spec has neither
/// option, and an InvalidArgument error if it has one alone or an invalid name.
Expected<std::string> methodOf(const ModelSpec &Spec);

/// Returns the SerDes that the option `serdes` of \p Spec names. Without this
/// option, returns defaultSerDes(), or, if \p Spec has the option `service`,
/// the only format in \p Formats for the user's own messages. Returns an
/// InvalidArgument error if there are several such formats.
Expected<std::string> serDesOf(const ModelSpec &Spec,
                               const SerDesFactory &Formats);

/// Converts the address `host:port` or `unix:PATH` to the form of
/// Listener::name().
std::string nameOf(const std::string &Address);

struct ServerSpec {
  std::string Address;
  gRPCCredentials Credentials;
  std::size_t MaxMessage;
  std::size_t MaxSessions;
  /// The path of the method of the user's own service, or empty.
  std::string Method;
  /// The SerDes of clients that do not name a SerDes.
  std::string DefaultSerDes;
  /// The file to which the server writes its address. Used only in training.
  std::string Announce;

  /// Parses \p Text. Returns an InvalidArgument error if \p Text is wrong. \p
  /// MaxMessage and \p MaxSessions are used if \p Text does not set them. In
  /// training, there is only one session. The server then also accepts the
  /// trainer's options and ignores them, so that both ends can use the same
  /// spec.
  static Expected<ServerSpec>
  parse(std::string_view Text, std::size_t MaxMessage, std::size_t MaxSessions,
        const SerDesFactory &Formats, bool IsTraining = false);
};

/// Returns the name of the default SerDes. This is "protobuf", which stock
/// clients and servers use, if \p Formats contains it. Otherwise, it is
/// "bitstream".
std::string_view defaultSerDes(const SerDesFactory &Formats);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSPEC_H
