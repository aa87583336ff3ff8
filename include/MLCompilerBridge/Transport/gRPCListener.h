//===- gRPCListener.h - Accepts compilers through gRPC ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines openGRPCListener(), with which a ModelServer accepts compilers on
/// this and other machines through gRPC. This header belongs to the component
/// MLCompilerBridge::gRPC.
/// \code
///   std::vector<std::unique_ptr<Listener>> Listeners;
///   Listeners.push_back(std::move(*openLocalListener("/tmp/advisor")));
///   Listeners.push_back(std::move(*openGRPCListener("grpc://0.0.0.0:50051?..."))));
///   auto Server = ModelServer::create(std::move(Listeners));
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_GRPCLISTENER_H
#define MLCOMPILERBRIDGE_TRANSPORT_GRPCLISTENER_H

#include "MLCompilerBridge/Transport/Listener.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

namespace MLBridge {

/// Listens at \p Spec, which is `grpc://HOST:PORT` or `grpc+unix:PATH`. The
/// Unix socket has mode 0600. An empty HOST means the loopback address. PORT 0
/// selects a free port, which name() returns.
///
/// The options `cert=` and `key=` enable TLS. With `tls=FILE`, each compiler
/// must also have a certificate that an authority in FILE has signed. The
/// options `max-message=` and `max-sessions=` override \p Options. If a
/// compiler does not name its SerDes, as stock gRPC clients do not, the session
/// uses Protobuf.
///
/// With `service=my.Advisor` and `method=Decide`, compilers call this unary
/// method of the user's own service instead of a method of
/// mlcompilerbridge.proto. The method has the message types that addProtobuf()
/// has added to \p Options. If the model fails or defers, a client without this
/// library receives the status UNKNOWN or ABORTED.
///
/// This function starts threads of gRPC, so fork before calling it.
Expected<std::unique_ptr<Listener>>
openGRPCListener(std::string_view Spec, ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCLISTENER_H
