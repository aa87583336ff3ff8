//===- GRPCCredentials.h - The two ends of a TLS connection -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From PEM files to gRPC's credentials.
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

Expected<std::shared_ptr<grpc::ChannelCredentials>>
makeChannelCredentials(const gRPCCredentials &Files);
/// With authorities, whoever has no certificate of theirs is not let in.
Expected<std::shared_ptr<grpc::ServerCredentials>>
makeServerCredentials(const gRPCCredentials &Files);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCREDENTIALS_H
