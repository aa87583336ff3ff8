//===- gRPCListener.h - Where compilers arrive by gRPC --------------*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// openGRPCListener(): lets a ModelServer meet compilers on this machine and
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

/// Listens at \p Spec: `grpc://HOST:PORT`, where no HOST is this machine's
/// loopback and PORT 0 one that is free (name() tells it), or `grpc+unix:PATH`,
/// a socket of mode 0600. With `cert=` and `key=` it speaks TLS, with `tls=` it
/// also demands a certificate of those authorities from each compiler.
/// `max-message=` goes before that of \p Options. A compiler that does not name
/// its SerDes, as stock gRPC clients do not, speaks Protobuf.
///
/// The listener has a thread of gRPC's; whoever forks does so before.
Expected<std::unique_ptr<Listener>>
openGRPCListener(std::string_view Spec, ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_GRPCLISTENER_H
