//===- GRPCStatus.h - Errors from gRPC statuses -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Conversions of gRPC's statuses to Errors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
#define MLBRIDGE_LIB_GRPC_GRPCSTATUS_H

#include "MLCompilerBridge/Error.h"

#include <grpcpp/support/status.h>
#include <string>
#include <string_view>

namespace MLBridge::GRPC {

/// Returns the error for a call to \p Peer that ended with \p Status and
/// without a reply.
Error errorOf(const grpc::Status &Status, const std::string &Peer);

/// Returns the error for a call of a method of the user's own service. The
/// status ABORTED leaves the decision to the compiler.
Error errorOfOwnMethod(const grpc::Status &Status, const std::string &Peer);

/// Returns the status for the reply \p Name (see ReplyNames) to a call of a
/// method of the user's own service. errorOfOwnMethod() converts the status
/// back.
grpc::Status statusOf(std::string_view Name, std::string_view Text);

/// Returns a System error if a connection failed because of a certificate.
/// Otherwise returns success. \p Reason is gRPC's explanation of the failure.
/// After such an error, another attempt would fail, too.
Error certificateError(const std::string &Reason, const std::string &Peer);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
