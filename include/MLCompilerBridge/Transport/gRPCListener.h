//===- gRPCListener.h - Where compilers connect by gRPC ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// openGRPCListener(): lets a ModelServer accept compilers on this machine and
/// others through gRPC. In the component MLCompilerBridge::gRPC.
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

/// Listens at \p Spec: `grpc://HOST:PORT` or `grpc+unix:PATH`, a socket of mode
/// 0600. An empty HOST means the loopback address; PORT 0 picks a free port,
/// which name() reports. `cert=` and `key=` enable TLS; with `tls=`, each
/// compiler must also have a certificate signed by those authorities.
/// `max-message=` and `max-sessions=` override \p Options. Compilers that do
/// not name their SerDes, such as stock gRPC clients, use Protobuf.
///
/// Starts gRPC threads; fork before calling this.
Expected<std::unique_ptr<Listener>>
openGRPCListener(std::string_view Spec, ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCLISTENER_H
