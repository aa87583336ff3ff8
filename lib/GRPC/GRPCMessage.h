//===- GRPCMessage.h - Messages in gRPC's buffers ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From our messages, which lie in one piece at an aligned address, to gRPC's
/// byte buffers and back.
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

/// The next message to go out. gRPC sends it from where it is written.
class OutgoingMessage {
public:
  /// Room for \p Size bytes.
  Expected<Span<std::byte>> acquire(std::size_t Size);
  /// The first \p Size bytes, which stay as they are until gRPC has let go of
  /// them: acquire() takes other memory meanwhile.
  grpc::ByteBuffer lend(std::size_t Size);

private:
  std::shared_ptr<FrameBuffer> Buffer;
};

/// The last message that came in.
class IncomingMessage {
public:
  /// Takes what \p From holds, and leaves it empty.
  Error take(grpc::ByteBuffer &From);
  Span<const std::byte> bytes() const;
  std::shared_ptr<const void> share() const { return Buffer.share(); }

private:
  FrameBuffer Buffer;
  std::size_t Size = 0;
  /// Kept for its memory.
  std::vector<grpc::Slice> Slices;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCMESSAGE_H
