//===- GRPCStatus.cpp - Errors from gRPC statuses -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCStatus.h"

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "Support/PrintableText.h"

using namespace MLBridge;

Error GRPC::errorOf(const grpc::Status &Status, const std::string &Peer) {
  // Make the text printable, because it comes from the peer.
  const std::string Why = printable(Status.error_message(), 1000);
  switch (Status.error_code()) {
  case grpc::StatusCode::OK:
    return {ErrorCode::PeerClosed, Peer + " ended the session before it "
                                          "answered"};
  case grpc::StatusCode::DEADLINE_EXCEEDED:
    return {ErrorCode::Timeout, Peer + " did not answer before the deadline"};
  case grpc::StatusCode::UNAVAILABLE:
  case grpc::StatusCode::CANCELLED:
    return {ErrorCode::PeerClosed,
            Peer +
                " ended or closed the connection before it answered: " + Why};
  case grpc::StatusCode::UNIMPLEMENTED:
    return {ErrorCode::Unsupported,
            Peer + " is a gRPC server without the called method: " + Why +
                "; check the address and call="};
  case grpc::StatusCode::FAILED_PRECONDITION:
  case grpc::StatusCode::UNAUTHENTICATED:
  case grpc::StatusCode::PERMISSION_DENIED:
    return {ErrorCode::Unsupported, Peer + " refused this session: " + Why};
  case grpc::StatusCode::RESOURCE_EXHAUSTED:
  case grpc::StatusCode::INTERNAL:
    return {ErrorCode::Malformed,
            Peer + ": a message or its frames were refused: " + Why +
                " (max-message sets the limit of each side)"};
  default:
    // This case covers the statuses that applications choose. It also covers
    // UNKNOWN, which a stock server returns after an exception.
    return {ErrorCode::Model, Peer + ": " + Why};
  }
}

Error GRPC::errorOfOwnMethod(const grpc::Status &Status,
                             const std::string &Peer) {
  if (Status.error_code() != grpc::StatusCode::ABORTED)
    return errorOf(Status, Peer);
  return {ErrorCode::Deferred, printable(Status.error_message(), 1000)};
}

grpc::Status GRPC::statusOf(std::string_view Name, std::string_view Text) {
  // gRPC refuses metadata of more than 8 KiB. It escapes each unprintable byte
  // as three bytes.
  return {Name == ReplyNames::Deferred ? grpc::StatusCode::ABORTED
                                       : grpc::StatusCode::UNKNOWN,
          printable(Text, 1000)};
}

Error GRPC::certificateError(const std::string &Reason,
                             const std::string &Peer) {
  auto Says = [&](std::string_view Part) {
    return Reason.find(Part) != std::string::npos;
  };
  if (Says("CERTIFICATE_VERIFY_FAILED") || Says("certificate verify failed"))
    return {ErrorCode::System,
            Peer + " has a certificate that no authority in tls= has signed: " +
                Reason};
  if (Says("Hostname Verification Check failed") ||
      Says("not in peer certificate") || Says("Peer name"))
    return {ErrorCode::System,
            Peer + " has a certificate for another name: " + Reason};
  return Error::success();
}
