//===- GRPCProtocol.h - Methods and metadata over gRPC ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The methods of the service, the metadata of its calls, and the common
/// settings of both ends. docs/guides/grpc.md documents them for users.
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
  /// The method for one call per session, and for one call per message.
  const char *Stream, *Unary;
};
inline constexpr Methods Inference{
    "/mlcompilerbridge.MLCompilerBridge/session",
    "/mlcompilerbridge.MLCompilerBridge/getAdvice"};
inline constexpr Methods Training{
    "/mlcompilerbridge.MLCompilerBridge/training",
    "/mlcompilerbridge.MLCompilerBridge/getObservation"};

/// The metadata of a call, which correspond to the hello of
/// Transport/Handshake.h. Stock clients, which use Protobuf, send no metadata.
inline constexpr int ProtocolVersion = 1;
namespace Metadata {
inline constexpr char Protocol[] = "mlbridge-protocol";
inline constexpr char SerDes[] = "mlbridge-serdes";
inline constexpr char AdviceType[] = "mlbridge-advice";
inline constexpr char Pid[] = "mlbridge-pid";
/// Names the session of a unary call.
inline constexpr char Session[] = "mlbridge-session";
} // namespace Metadata

/// Sets the arguments that both ends of a connection use.
inline void setCommonArguments(grpc::ChannelArguments &Arguments,
                               std::size_t MaxMessage) {
  // gRPC's default is 4 MiB.
  Arguments.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<std::size_t>(MaxMessage, INT_MAX)));
  Arguments.SetMaxSendMessageSize(-1);
  // Avoid waiting for the reader's flow control within a message.
  Arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  // Each frame costs a header and a slice; the default size is 16 KiB.
  Arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  Arguments.SetString(GRPC_ARG_OPTIMIZATION_TARGET, "latency");
}

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H
