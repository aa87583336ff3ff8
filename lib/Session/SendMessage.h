//===- SendMessage.h - Sends tensors through a channel ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines sendMessage(), with which both sides of a session pass a message
/// from a SerDes to a transport.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SESSION_SENDMESSAGE_H
#define MLBRIDGE_LIB_SESSION_SENDMESSAGE_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"

namespace MLBridge {

/// Sends \p Tensors through \p Channel. If the tensors are an error or a
/// deferral, and the channel has its own form of such replies, uses that form.
/// Sends the tensors directly from their memory if this saves a copy.
/// Otherwise, writes the message to memory from acquire(). \p Until is a
/// Deadline for a Transport, and a Duration for a ServerChannel.
template <typename ChannelT, typename UntilT>
Error sendMessage(BaseSerDes &Codec, ChannelT &Channel,
                  Span<const TensorView> Tensors, UntilT Until) {
  if constexpr (requires { Channel.sendFailure("", ""); })
    for (const TensorView &Tensor : Tensors)
      if ((Tensor.Name == ReplyNames::Error ||
           Tensor.Name == ReplyNames::Deferred) &&
          Tensor.Type == ElementType::String && Tensor.Dims.isScalar() &&
          Channel.sendFailure(Tensor.Name, Tensor.text()))
        return Error::success();
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
