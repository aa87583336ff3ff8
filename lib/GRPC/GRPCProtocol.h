//===- GRPCProtocol.h - What our two sides say by gRPC ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a session over gRPC is made of, beside its messages: the service's
/// methods, and what travels in a call's metadata. docs/grpc.md says it to
/// users.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H
#define MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H

#include "Transport/Handshake.h"

#include <algorithm>
#include <climits>
#include <grpcpp/support/channel_arguments.h>

namespace MLBridge::GRPC {

/// The methods of include/MLCompilerBridge/mlcompilerbridge.proto.
struct Methods {
  /// One call a session, and a call for each message.
  const char *Stream, *Unary;
};
inline constexpr Methods Inference{
    "/mlcompilerbridge.MLCompilerBridge/session",
    "/mlcompilerbridge.MLCompilerBridge/getAdvice"};
inline constexpr Methods Training{
    "/mlcompilerbridge.MLCompilerBridge/training",
    "/mlcompilerbridge.MLCompilerBridge/getObservation"};

/// The hello of a session (Transport/Handshake.h), as a call's metadata. Stock
/// clients send none of it: they speak Protobuf.
inline constexpr int ProtocolVersion = 1;
namespace Metadata {
inline constexpr char Protocol[] = "mlbridge-protocol";
inline constexpr char SerDes[] = "mlbridge-serdes";
inline constexpr char AdviceType[] = "mlbridge-advice";
inline constexpr char Pid[] = "mlbridge-pid";
/// Which unary calls belong together.
inline constexpr char Session[] = "mlbridge-session";
} // namespace Metadata

/// What both ends of a connection are told.
inline void setCommonArguments(grpc::ChannelArguments &Arguments,
                               std::size_t MaxMessage) {
  // Its own default is 4 MiB.
  Arguments.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<std::size_t>(MaxMessage, INT_MAX)));
  Arguments.SetMaxSendMessageSize(-1);
  // A message should not wait for the reader's permission to go on.
  Arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  // Frames of 16 KiB, the default, cost a header and a slice each.
  Arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  Arguments.SetString(GRPC_ARG_OPTIMIZATION_TARGET, "latency");
}

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H
