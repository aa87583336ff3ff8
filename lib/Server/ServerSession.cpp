//===- ServerSession.cpp - One compiler, as the model side sees it --------===//
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
  return (Bare ? "bare compiler" : "compiler " + std::to_string(Pid)) +
         " (session " + std::to_string(Number) + ")";
}

ServerSession::ServerSession(Identity Who,
                             std::unique_ptr<ServerChannel> Channel,
                             std::unique_ptr<BaseSerDes> Codec,
                             Duration Timeout)
    : Who(std::move(Who)), Channel(std::move(Channel)), Codec(std::move(Codec)),
      Timeout(Timeout) {
  if (this->Who.Bare)
    this->Codec->setDialect(BaseSerDes::Dialect::BareModel);
}

Expected<ModelServer::Request> ServerSession::decode() {
  AwaitsReply = true;
  Expected<Span<const std::byte>> Message =
      Copy.unlessSafe(Channel->message(), *Channel, *Codec);
  if (!Message)
    return Message.takeError();
  Expected<Span<const TensorView>> Tensors =
      Codec->deserializeQuestion(*Message);
  if (!Tensors) {
    Error E = Tensors.takeError();
    return Error(E.code(), Who.describe() + ": " + E.message());
  }
  const void *Where = Message->data();
  std::shared_ptr<const void> Decoded = Codec->memory();
  if (Where != Buffer || Decoded != DecodedMemory || !Memory) {
    ++Moves;
    Buffer = Where;
    DecodedMemory = Decoded;
    struct Owners {
      std::shared_ptr<const void> Message, Decoded;
    };
    std::shared_ptr<const void> Copied = Copy.share();
    Memory = std::make_shared<Owners>(Owners{
        Copied ? std::move(Copied) : Channel->memory(), std::move(Decoded)});
  }
  ModelServer::Request Q;
  Q.Features = *Tensors;
  Q.Session = Who.Number;
  Q.IsFirst = Requests++ == 0;
  Q.Pid = Who.Pid;
  Q.Bare = Who.Bare;
  Q.AdviceType = Who.AdviceType;
  Q.Layout = {Moves, Codec->layout()};
  Q.Memory = Memory;
  return Q;
}

Error ServerSession::reply(Span<const TensorView> Advice) {
  AwaitsReply = false;
  return sendMessage(*Codec, *Channel, Advice, Timeout);
}
