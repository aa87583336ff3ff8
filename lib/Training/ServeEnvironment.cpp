//===- ServeEnvironment.cpp - Lets a trainer drive a compiler -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements training with the transports that inference uses. In inference,
/// the compiler sends requests and the model replies. In training, each
/// observation is sent as a request, and the trainer's next command is the
/// reply. The compiler's first request has no observation and only states that
/// the compiler is ready. Training therefore has all guarantees of an inference
/// session.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/ServeEnvironment.h"

#include "MLCompilerBridge/Training/EnvironmentSession.h"
#include "Session/PrivateCopy.h"
#include "Session/SendMessage.h"

using namespace MLBridge;

namespace {

/// Closes the channel when serveEnvironment() returns, so that the trainer does
/// not wait for the compiler.
struct CloseAtExit {
  Transport &Channel;
  ~CloseAtExit() { Channel.close(); }
};

} // namespace

/// Returns success if \p E means that the trainer has disconnected. Otherwise,
/// returns \p E.
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
            Channel.describe() + ": bare mode cannot carry the messages of "
                                 "training, which have several tensors; "
                                 "expected a trainer with this library"};
  Codec.setDialect(BaseSerDes::Dialect::Native);

  EnvironmentSession Session(Env);
  PrivateCopy Copy;
  Span<const TensorView> Next = Session.greet();
  for (;;) {
    // Use one deadline for both directions. Sending needs almost no time,
    // because a trainer reads the observation immediately.
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
