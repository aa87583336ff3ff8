//===- GRPCStatus.h - Errors from gRPC statuses -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts the status of a call or of a failed connection to an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
#define MLBRIDGE_LIB_GRPC_GRPCSTATUS_H

#include "MLCompilerBridge/Error.h"

#include <grpcpp/support/status.h>
#include <string>

namespace MLBridge::GRPC {

/// The Error for a call to \p Peer that ended with \p Status without a reply.
Error errorOf(const grpc::Status &Status, const std::string &Peer);

/// Returns a System error if \p Reason, gRPC's explanation of a failed
/// connection, blames a certificate: then retrying is useless. Success
/// otherwise.
Error certificateError(const std::string &Reason, const std::string &Peer);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
