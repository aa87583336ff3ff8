//===- GRPCCredentials.h - Credentials from PEM files -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates gRPC's credentials from PEM files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCCREDENTIALS_H
#define MLBRIDGE_LIB_GRPC_GRPCCREDENTIALS_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <memory>

namespace MLBridge::GRPC {

/// The credentials of a client. Errors: those of readRegularFile();
/// InvalidArgument if a file is not PEM.
Expected<std::shared_ptr<grpc::ChannelCredentials>>
makeChannelCredentials(const gRPCCredentials &Files);
/// The credentials of a server. With authorities, clients need a certificate
/// that they have signed. Errors: as makeChannelCredentials(); InvalidArgument
/// without a certificate.
Expected<std::shared_ptr<grpc::ServerCredentials>>
makeServerCredentials(const gRPCCredentials &Files);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCREDENTIALS_H
