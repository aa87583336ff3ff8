//===- GRPCStatus.h - What a call's status means ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the status with which a call ended, or why a connection was not made,
/// to an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
#define MLBRIDGE_LIB_GRPC_GRPCSTATUS_H

#include "MLCompilerBridge/Error.h"

#include <grpcpp/support/status.h>
#include <string>

namespace MLBridge::GRPC {

/// Why a call that \p Peer was asked by has no answer.
Error errorOf(const grpc::Status &Status, const std::string &Peer);

/// What is wrong with the certificates, where \p Reason, for which there is no
/// connection, says so: then there is no point in trying again.
Error certificateError(const std::string &Reason, const std::string &Peer);

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSTATUS_H
