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

#ifndef MLBRIDGE_LIB_SESSION_SENDMESSAGE_H
#define MLBRIDGE_LIB_SESSION_SENDMESSAGE_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"

namespace MLBridge {

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

#endif // MLBRIDGE_LIB_SESSION_SENDMESSAGE_H
