//===- GRPCMessage.cpp - Messages in gRPC's buffers -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCMessage.h"

#include <atomic>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::GRPC;

//===----------------------------------------------------------------------===//
// Outgoing messages
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> OutgoingMessage::acquire(std::size_t Size) {
  if (!Buffer || Buffer.use_count() > 1)
    Buffer = std::make_shared<FrameBuffer>();
  // Synchronize with the thread of gRPC that released the memory.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (Error E = Buffer->grow(FrameBuffer::PrefixSize + Size, /*Keep=*/0))
    return E;
  return Span<std::byte>(Buffer->data() + FrameBuffer::PrefixSize,
                         Buffer->capacity() - FrameBuffer::PrefixSize);
}

grpc::ByteBuffer OutgoingMessage::asByteBuffer(std::size_t Size) {
  using Owner = std::shared_ptr<FrameBuffer>;
  auto Release = [](void *Holder) { delete static_cast<Owner *>(Holder); };
  grpc::Slice Message(Buffer->data() + FrameBuffer::PrefixSize, Size, Release,
                      std::make_unique<Owner>(Buffer).release());
  return {&Message, 1};
}

//===----------------------------------------------------------------------===//
// Incoming messages
//===----------------------------------------------------------------------===//

Error IncomingMessage::take(grpc::ByteBuffer &From) {
  Size = From.Length();
  if (Error E = Buffer.grow(FrameBuffer::PrefixSize + Size, /*Keep=*/0))
    return E;
  if (grpc::Status S = From.Dump(&Slices); !S.ok())
    return {ErrorCode::Malformed,
            "a message is unreadable: " + S.error_message()};
  std::byte *Next = Buffer.data() + FrameBuffer::PrefixSize;
  for (const grpc::Slice &Piece : Slices) {
    std::memcpy(Next, Piece.begin(), Piece.size());
    Next += Piece.size();
  }
  Slices.clear();
  From.Clear();
  return Error::success();
}

Span<const std::byte> IncomingMessage::bytes() const {
  return {Buffer.data() + FrameBuffer::PrefixSize, Size};
}
