//===- ServeEnvironment.cpp - Lets a trainer drive a compiler -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Training over the transports of inference. There the compiler asks and the
/// model answers; here each observation is the request and the next command
/// its answer, behind one request more that says that the compiler is ready.
/// So everything that a session promises holds here too.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/ServeEnvironment.h"

#include "MLCompilerBridge/Training/EnvironmentSession.h"
#include "Session/PrivateCopy.h"
#include "Session/SendMessage.h"

using namespace MLBridge;

namespace {

/// Ends the conversation however serving it ends: the trainer, who may be
/// waiting, is to know.
struct CloseAtExit {
  Transport &Channel;
  ~CloseAtExit() { Channel.close(); }
};

} // namespace

/// A trainer that has left is done.
static Error unlessLeft(Error E) {
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
            Channel.describe() + ": training takes messages of several "
                                 "tensors, which bare pipes do not carry; "
                                 "expected a trainer with this library"};
  Codec.setDialect(BaseSerDes::Dialect::Native);

  EnvironmentSession Session(Env);
  PrivateCopy Copy;
  Span<const TensorView> Next = Session.greet();
  for (;;) {
    // One deadline for both: a trainer reads what it has asked for at once.
    Deadline Until = Deadline::in(Options.CommandTimeout);
    if (Error E = sendMessage(Codec, Channel, Next, Until))
      return unlessLeft(std::move(E));
    Expected<Span<const std::byte>> Message = Channel.receive(Until);
    if (!Message)
      return unlessLeft(Message.takeError());
    Message = Copy.copyIfShared(*Message, Channel, Codec);
    if (!Message)
      return Message.takeError();
    Expected<Span<const TensorView>> Command = Codec.deserialize(*Message);
    if (!Command) {
      Error E = Command.takeError();
      return {E.code(), Channel.describe() + ": " + E.message()};
    }
    Next = Session.answer(*Command);
    if (Session.isClosed())
      return Error::success();
  }
}
