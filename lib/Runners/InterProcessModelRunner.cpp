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

Error InterProcessModelRunner::Absence::notNow() const {
  const Duration Left = NextLook.remaining();
  auto InWords = [](Duration D) {
    return posix::formatDuration(
        std::chrono::duration_cast<std::chrono::milliseconds>(D));
  };
  return {Why.code(), std::string(Why.message()) + " (looked " +
                          InWords(Pause - Left) + " ago, looks again in " +
                          InWords(Left) + ")"};
}

Error InterProcessModelRunner::connectOrBackOff(const AdviceSpec &Wanted,
                                                Deadline Until) {
  constexpr Duration FirstPause = std::chrono::seconds(1);
  constexpr Duration LastPause = std::chrono::seconds(30);
  if (Absent && !Absent->NextLook.expired())
    return Absent->notNow();
  Deadline ToMeet =
      Until.restartedFor(Absent ? Channel->timeToLook() : ConnectTimeout);
  Error Failure =
      connectUntil(Wanted, MayBeBusy ? ToMeet.orEarlier(Until) : ToMeet);
  // Other failures are found without waiting.
  const bool IsTimeout = Failure.code() == ErrorCode::Timeout;
  // A wait that was interrupted was too short to tell.
  if (IsTimeout && Until.isInterrupted())
    return Failure;
  if (IsTimeout) {
    Duration Pause =
        Absent ? std::min(2 * Absent->Pause, LastPause) : FirstPause;
    Absent = {Failure, Deadline::in(Pause), Pause};
  } else {
    Absent.reset();
    MayBeBusy = false;
  }
  return Failure;
}

Expected<Advice> InterProcessModelRunner::evaluateUntyped(
    const FeatureSet &Features, const AdviceSpec &Wanted, Deadline Until) {
  if (!Channel->isConnected()) {
    // Waiting for the model to start is not waiting for its answer, for which
    // there is as much time as the caller has given. Waiting for one that is
    // busy is.
    const Duration ForTheAnswer = Until.remaining();
    const bool WasBusy = MayBeBusy;
    if (Error E = connectOrBackOff(Wanted, Until))
      return E;
    if (!WasBusy)
      Until = Until.restartedFor(ForTheAnswer);
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
    return Error(E.code(), E.message() + "; timeout= gives it longer");
  }
  Reply = Copy->unlessSafe(*Reply, *Channel, *Codec);
  if (!Reply) {
    Channel->close();
    return Reply.takeError();
  }
  Expected<Span<const TensorView>> Tensors = Codec->deserialize(*Reply, Wanted);
  if (Tensors)
    return Advice(*Tensors);
  // A model that fails or defers has answered; anything else and the two sides
  // no longer agree on what is on the wire.
  Error E = Tensors.takeError();
  if (E.code() != ErrorCode::Model && E.code() != ErrorCode::Deferred)
    Channel->close();
  return Error(E.code(), describe() + ": " + E.message());
}
