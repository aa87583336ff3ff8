//===- GRPCProtocol.h - Methods and metadata over gRPC ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The protocol of both ends: the methods of the service, the metadata of its
/// calls, and the common settings. The user's documentation is
/// docs/guides/grpc.md.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H
#define MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H

#include "Transport/Handshake.h"

#include <algorithm>
#include <climits>
#include <grpcpp/support/channel_arguments.h>

namespace MLBridge::GRPC {

/// The methods of the service in
/// include/MLCompilerBridge/mlcompilerbridge.proto.
struct Methods {
  /// Stream is the method for one call per session. Unary is the method for one
  /// call per message.
  const char *Stream, *Unary;
};
inline constexpr Methods Inference{
    "/mlcompilerbridge.MLCompilerBridge/session",
    "/mlcompilerbridge.MLCompilerBridge/getAdvice"};
inline constexpr Methods Training{
    "/mlcompilerbridge.MLCompilerBridge/training",
    "/mlcompilerbridge.MLCompilerBridge/getObservation"};

/// The metadata of a call. It contains the same facts as the first packet of a
/// handshake (Transport/Handshake.h). Stock clients use Protobuf and send no
/// metadata.
inline constexpr int ProtocolVersion = 1;
namespace Metadata {
inline constexpr char Protocol[] = "mlbridge-protocol";
inline constexpr char SerDes[] = "mlbridge-serdes";
inline constexpr char AdviceType[] = "mlbridge-advice";
inline constexpr char Pid[] = "mlbridge-pid";
/// The name of the session to which a unary call belongs.
inline constexpr char Session[] = "mlbridge-session";
} // namespace Metadata

/// Sets the arguments that are the same for both ends of a connection.
inline void setCommonArguments(grpc::ChannelArguments &Arguments,
                               std::size_t MaxMessage) {
  // Set the limit explicitly, because gRPC's default is only 4 MiB.
  Arguments.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<std::size_t>(MaxMessage, INT_MAX)));
  Arguments.SetMaxSendMessageSize(-1);
  // Enlarge the window so that a writer need not wait for the reader within a
  // message.
  Arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  // Enlarge the frames from 16 KiB, because each frame costs a header and a
  // slice.
  Arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  Arguments.SetString(GRPC_ARG_OPTIMIZATION_TARGET, "latency");
}

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROTOCOL_H
