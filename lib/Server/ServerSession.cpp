//===- ServerSession.cpp - The model side of one session ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/ServerSession.h"

#include "Session/SendMessage.h"

using namespace MLBridge;

std::string ServerSession::Identity::describe() const {
  return (Bare ? "compiler in bare mode" : "compiler " + std::to_string(Pid)) +
         " (session " + std::to_string(Number) + ")";
}

ServerSession::ServerSession(Identity Peer,
                             std::unique_ptr<ServerChannel> Channel,
                             std::unique_ptr<BaseSerDes> Codec,
                             Duration Timeout)
    : Peer(std::move(Peer)), Channel(std::move(Channel)),
      Codec(std::move(Codec)), Timeout(Timeout) {
  if (this->Peer.Bare)
    this->Codec->setDialect(BaseSerDes::Dialect::BareModel);
}

Expected<ModelServer::Request> ServerSession::decode() {
  AwaitsReply = true;
  Expected<Span<const std::byte>> Message =
      Copy.copyIfShared(Channel->message(), *Channel, *Codec);
  if (!Message)
    return Message.takeError();
  Expected<Span<const TensorView>> Tensors =
      Codec->deserializeRequest(*Message);
  if (!Tensors) {
    Error E = Tensors.takeError();
    return Error(E.code(), Peer.describe() + ": " + E.message());
  }
  const void *Data = Message->data();
  std::shared_ptr<const void> Decoded = Codec->memory();
  if (Data != Buffer || Decoded != DecodedMemory || !Memory) {
    ++Moves;
    Buffer = Data;
    DecodedMemory = Decoded;
    struct Owners {
      std::shared_ptr<const void> Message, Decoded;
    };
    std::shared_ptr<const void> Copied = Copy.share();
    Memory = std::make_shared<Owners>(Owners{
        Copied ? std::move(Copied) : Channel->memory(), std::move(Decoded)});
  }
  ModelServer::Request Result;
  Result.Features = *Tensors;
  Result.Session = Peer.Number;
  Result.IsFirst = Requests++ == 0;
  Result.Pid = Peer.Pid;
  Result.Bare = Peer.Bare;
  Result.AdviceType = Peer.AdviceType;
  Result.Layout = {Moves, Codec->layout()};
  Result.Memory = Memory;
  return Result;
}

Error ServerSession::reply(Span<const TensorView> Advice) {
  AwaitsReply = false;
  return sendMessage(*Codec, *Channel, Advice, Timeout);
}
