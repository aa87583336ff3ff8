//===- GRPCMessage.h - Messages in gRPC's buffers ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Conversions between messages and gRPC's byte buffers. A message is
/// contiguous and aligned, but a byte buffer may consist of several slices.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCMESSAGE_H
#define MLBRIDGE_LIB_GRPC_GRPCMESSAGE_H

#include "MLCompilerBridge/Span.h"
#include "Transport/FrameBuffer.h"

#include <grpcpp/support/byte_buffer.h>
#include <string>
#include <vector>

namespace MLBridge::GRPC {

/// The memory of the next outgoing message. gRPC sends the message without
/// copying it.
class OutgoingMessage {
public:
  Expected<Span<std::byte>> acquire(std::size_t Size);
  /// Returns a buffer of the first \p Size bytes of the region, without copying
  /// them. While gRPC holds the buffer, acquire() returns other memory.
  grpc::ByteBuffer asByteBuffer(std::size_t Size);

private:
  std::shared_ptr<FrameBuffer> Buffer;
};

/// The last incoming message.
class IncomingMessage {
public:
  /// Copies the message from \p From and empties \p From. Returns a Malformed
  /// error if gRPC cannot read the message, or a System error if memory runs
  /// out.
  Error take(grpc::ByteBuffer &From);
  Span<const std::byte> bytes() const;
  std::shared_ptr<const void> share() const { return Buffer.share(); }

private:
  FrameBuffer Buffer;
  std::size_t Size = 0;
  /// The slices of the message that take() copies. This is a member so that its
  /// memory is reused.
  std::vector<grpc::Slice> Slices;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCMESSAGE_H
