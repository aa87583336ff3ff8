//===- SendMessage.h - From tensors to a channel ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// sendMessage(): where a SerDes meets a transport, on both sides.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_SENDMESSAGE_H
#define MLBRIDGE_LIB_TRANSPORT_SENDMESSAGE_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include <cstring>

namespace MLBridge {

/// Sends a message that lies in \p Pieces by way of the region that \p Channel
/// lends.
template <typename ChannelT, typename UntilT>
Error sendGathered(ChannelT &Channel, Span<const Span<const std::byte>> Pieces,
                   UntilT Until) {
  std::size_t Size = 0;
  for (Span<const std::byte> Piece : Pieces)
    Size += Piece.size();
  Expected<Span<std::byte>> Region = Channel.acquire(Size);
  if (!Region)
    return Region.takeError();
  std::byte *Next = Region->data();
  for (Span<const std::byte> Piece : Pieces) {
    // Not std::copy: where that becomes a loop, a long message takes half as
    // long again.
    std::memcpy(Next, Piece.data(), Piece.size());
    Next += Piece.size();
  }
  return Channel.commit(Size, Until);
}

/// Sends \p Tensors through \p Channel: from where they lie where that saves a
/// copy, else by way of the region that the channel lends. \p Until is what the
/// channel takes: the compiler's a Deadline, the model's a Duration.
template <typename ChannelT, typename UntilT>
Error sendMessage(BaseSerDes &Codec, ChannelT &Channel,
                  Span<const TensorView> Tensors, UntilT Until) {
  Codec.cleanUp();
  for (const TensorView &Tensor : Tensors)
    Codec.setFeature(Tensor);
  Expected<std::size_t> Bound = Codec.getMaxSerializedSize();
  if (!Bound)
    return Bound.takeError();
  if (auto Pieces = Codec.getSerializedPieces(); !Pieces.empty())
    return Channel.send(Pieces, Until);
  Expected<Span<std::byte>> Region = Channel.acquire(*Bound);
  if (!Region)
    return Region.takeError();
  Codec.setOutputIsKept(Channel.isShared());
  Expected<std::size_t> Size = Codec.getSerializedData(*Region);
  if (!Size)
    return Size.takeError();
  return Channel.commit(*Size, Until);
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SENDMESSAGE_H
