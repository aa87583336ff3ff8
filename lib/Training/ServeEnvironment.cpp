//===- ServeEnvironment.cpp - Lets a trainer drive a compiler -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Training over the transports of inference. In inference the compiler sends
/// requests and the model replies. Here each observation is a request and the
/// next command its reply; a first request says that the compiler is ready. All
/// guarantees of a session therefore hold here too.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/ServeEnvironment.h"

#include "MLCompilerBridge/Training/EnvironmentSession.h"
#include "Session/PrivateCopy.h"
#include "Session/SendMessage.h"

using namespace MLBridge;

namespace {

/// Closes the channel on every return, so that a waiting trainer notices.
struct CloseAtExit {
  Transport &Channel;
  ~CloseAtExit() { Channel.close(); }
};

} // namespace

/// Turns the disconnection of a trainer into success.
static Error unlessDisconnected(Error E) {
  return E.code() == ErrorCode::PeerClosed ? Error::success() : std::move(E);
}

Error MLBridge::serveEnvironment(Environment &Env, Transport &Channel,
                                 BaseSerDes &Codec,
                                 const EnvironmentOptions &Options) {
  CloseAtExit Guard{Channel};
  SessionRequest Request;
  Request.SerDes = Codec.name();
  Request.Peer = PeerRole::Trainer;
  Expected<SessionTerms> Terms =
      Channel.connect(Request, Deadline::in(Options.ConnectTimeout));
  if (!Terms)
    return Terms.takeError();
  if (Terms->Bare)
    return {ErrorCode::Unsupported,
            Channel.describe() + ": bare pipes cannot carry the messages of "
                                 "training, which hold several tensors; "
                                 "expected a trainer with this library"};
  Codec.setDialect(BaseSerDes::Dialect::Native);

  EnvironmentSession Session(Env);
  PrivateCopy Copy;
  Span<const TensorView> Next = Session.greet();
  for (;;) {
    // One deadline for sending and receiving: a trainer immediately reads what
    // it has requested.
    Deadline Until = Deadline::in(Options.CommandTimeout);
    if (Error E = sendMessage(Codec, Channel, Next, Until))
      return unlessDisconnected(std::move(E));
    Expected<Span<const std::byte>> Message = Channel.receive(Until);
    if (!Message)
      return unlessDisconnected(Message.takeError());
    Message = Copy.copyIfShared(*Message, Channel, Codec);
    if (!Message)
      return Message.takeError();
    Expected<Span<const TensorView>> Command = Codec.deserialize(*Message);
    if (!Command) {
      Error E = Command.takeError();
      return {E.code(), Channel.describe() + ": " + E.message()};
    }
    Next = Session.reply(*Command);
    if (Session.isClosed())
      return Error::success();
  }
}
