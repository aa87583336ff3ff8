//===- InterProcessModelRunner.cpp - A model in another process -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"

#include "Session/PrivateCopy.h"
#include "Session/SendMessage.h"
#include "Support/Posix.h"

#include <algorithm>
#include <chrono>

using namespace MLBridge;

InterProcessModelRunner::InterProcessModelRunner(
    std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
    Duration ConnectTimeout)
    : Channel(std::move(Channel)), Codec(std::move(Codec)),
      ConnectTimeout(ConnectTimeout), Copy(std::make_unique<PrivateCopy>()) {}

InterProcessModelRunner::~InterProcessModelRunner() = default;

std::string InterProcessModelRunner::describe() const {
  return Channel->describe() + " (" + std::string(Codec->name()) + ")";
}

Error InterProcessModelRunner::connect(const AdviceSpec &Wanted) {
  return connectUntil(Wanted, Deadline::in(ConnectTimeout));
}

Error InterProcessModelRunner::connectUntil(const AdviceSpec &Wanted,
                                            Deadline Until) {
  SessionRequest Request;
  Request.SerDes = Codec->name();
  if (Wanted.Wanted != AdviceSpec::Form::Any)
    Request.AdviceType = elementTypeName(Wanted.Type);
  Expected<SessionTerms> Terms = Channel->connect(Request, Until);
  if (!Terms)
    return Terms.takeError();
  Codec->setDialect(Terms->Bare ? BaseSerDes::Dialect::BareCompiler
                                : BaseSerDes::Dialect::Native);
  return Error::success();
}

Error InterProcessModelRunner::FailedConnect::asError() const {
  const Duration Left = NextAttempt.remaining();
  auto InMillis = [](Duration D) {
    return posix::formatDuration(
        std::chrono::duration_cast<std::chrono::milliseconds>(D));
  };
  return {Why.code(), std::string(Why.message()) + " (last attempt " +
                          InMillis(Interval - Left) + " ago, next attempt in " +
                          InMillis(Left) + ")"};
}

Error InterProcessModelRunner::connectOrBackOff(const AdviceSpec &Wanted,
                                                Deadline Until) {
  constexpr Duration FirstInterval = std::chrono::seconds(1);
  constexpr Duration LastInterval = std::chrono::seconds(30);
  if (LastFailure && !LastFailure->NextAttempt.expired())
    return LastFailure->asError();
  Deadline ToConnect =
      Until.restartedFor(LastFailure ? Channel->timeToLook() : ConnectTimeout);
  Error Failure =
      connectUntil(Wanted, MayBeBusy ? ToConnect.orEarlier(Until) : ToConnect);
  // Back off only after a timeout, because other failures occur without a wait.
  const bool IsTimeout = Failure.code() == ErrorCode::Timeout;
  // Do not back off after an interrupt, because an interrupted wait does not
  // show whether the peer is running.
  if (IsTimeout && Until.isInterrupted())
    return Failure;
  if (IsTimeout) {
    Duration Interval = LastFailure
                            ? std::min(2 * LastFailure->Interval, LastInterval)
                            : FirstInterval;
    LastFailure = {Failure, Deadline::in(Interval), Interval};
  } else {
    LastFailure.reset();
    MayBeBusy = false;
  }
  return Failure;
}

Expected<Advice> InterProcessModelRunner::evaluateUntyped(
    const FeatureSet &Features, const AdviceSpec &Wanted, Deadline Until) {
  if (!Channel->isConnected()) {
    // Restart the request's timeout after connecting, because the model may
    // need a long time to start. But if the model was busy with an abandoned
    // request, the time to reconnect counts towards the timeout.
    const Duration ForReply = Until.remaining();
    const bool WasBusy = MayBeBusy;
    if (Error E = connectOrBackOff(Wanted, Until))
      return E;
    if (!WasBusy)
      Until = Until.restartedFor(ForReply);
  }
  if (Error E = sendMessage(*Codec, *Channel, Features.tensors(), Until)) {
    Channel->close();
    MayBeBusy = E.code() == ErrorCode::Timeout;
    return E;
  }
  Expected<Span<const std::byte>> Reply = Channel->receive(Until);
  if (!Reply) {
    Channel->close();
    Error E = Reply.takeError();
    if (E.code() != ErrorCode::Timeout)
      return E;
    MayBeBusy = true;
    return Error(E.code(), E.message() + "; timeout= sets a longer limit");
  }
  Reply = Copy->copyIfShared(*Reply, *Channel, *Codec);
  if (!Reply) {
    Channel->close();
    return Reply.takeError();
  }
  Expected<Span<const TensorView>> Tensors = Codec->deserialize(*Reply, Wanted);
  if (Tensors)
    return Advice(*Tensors);
  // Keep the session if the model failed or deferred, because the reply was
  // valid. After any other error, close the session, because the next bytes of
  // the stream may not be the start of a message.
  Error E = Tensors.takeError();
  if (E.code() != ErrorCode::Model && E.code() != ErrorCode::Deferred)
    Channel->close();
  return Error(E.code(), describe() + ": " + E.message());
}
