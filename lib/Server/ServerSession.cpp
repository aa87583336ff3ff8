//===- ServerSession.cpp - One compiler, as the model side sees it --------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/ServerSession.h"

#include "Transport/SendMessage.h"

using namespace MLBridge;

std::string ServerSession::Identity::describe() const {
  return (Bare ? "bare compiler" : "compiler " + std::to_string(Pid)) +
         " (session " + std::to_string(Number) + ")";
}

ServerSession::ServerSession(Identity Who,
                             std::unique_ptr<ServerChannel> Channel,
                             std::unique_ptr<BaseSerDes> Codec)
    : Who(std::move(Who)), Channel(std::move(Channel)),
      Codec(std::move(Codec)) {
  if (this->Who.Bare)
    this->Codec->setDialect(BaseSerDes::Dialect::BareModel);
}

Expected<ModelServer::Question> ServerSession::decode() {
  Expected<Span<const TensorView>> Tensors =
      Codec->deserialize(Channel->message());
  if (!Tensors) {
    Error E = Tensors.takeError();
    return Error(E.code(), Who.describe() + ": " + E.message());
  }
  const void *Where = Channel->message().data();
  if (Layout == 0 || Codec->layout() != CodecLayout || Where != Buffer) {
    ++Layout;
    CodecLayout = Codec->layout();
    Buffer = Where;
    struct Owners {
      std::shared_ptr<const void> Message, Decoded;
    };
    Memory =
        std::make_shared<Owners>(Owners{Channel->memory(), Codec->memory()});
  }
  ModelServer::Question Q;
  Q.Features = *Tensors;
  Q.Session = Who.Number;
  Q.Pid = Who.Pid;
  Q.Bare = Who.Bare;
  Q.AdviceType = Who.AdviceType;
  Q.Layout = Layout;
  Q.Memory = Memory;
  return Q;
}

Error ServerSession::reply(Span<const TensorView> Advice, Deadline Until) {
  return sendMessage(*Codec, *Channel, Advice, Until);
}
