//===- GRPCCredentials.h - Credentials from PEM files -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that create gRPC's credentials from PEM files.
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

/// Returns the credentials of a client. Returns the errors of
/// readRegularFile(), or an InvalidArgument error if a file is not in PEM
/// format.
Expected<std::shared_ptr<grpc::ChannelCredentials>>
makeChannelCredentials(const gRPCCredentials &Files);
/// Returns the credentials of a server. If \p Files has authorities, each
/// client needs a certificate that one of these authorities has signed. Returns
/// the errors of makeChannelCredentials(), or an InvalidArgument error if \p
/// Files has no certificate.
Expected<std::shared_ptr<grpc::ServerCredentials>>
makeServerCredentials(const gRPCCredentials &Files);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCREDENTIALS_H
