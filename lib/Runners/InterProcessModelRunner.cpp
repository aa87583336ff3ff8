//===- InterProcessModelRunner.cpp - A model in another process -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/InterProcessModelRunner.h"

using namespace MLBridge;

InterProcessModelRunner::InterProcessModelRunner(
    std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
    Duration ConnectTimeout)
    : Channel(std::move(Channel)), Codec(std::move(Codec)),
      ConnectTimeout(ConnectTimeout) {}

InterProcessModelRunner::~InterProcessModelRunner() = default;

std::string InterProcessModelRunner::describe() const {
  return Channel->describe() + " (" + std::string(Codec->name()) + ")";
}

Error InterProcessModelRunner::connect(const AdviceSpec &Wanted) {
  SessionRequest Request;
  Request.SerDes = Codec->name();
  if (Wanted.Wanted != AdviceSpec::Form::Any)
    Request.AdviceType = elementTypeName(Wanted.Type);
  Expected<SessionTerms> Terms =
      Channel->connect(Request, Deadline::in(ConnectTimeout));
  if (!Terms)
    return Terms.takeError();
  if (Terms->Bare)
    Codec->setBare(/*ModelSide=*/false);
  return Error::success();
}

Error InterProcessModelRunner::send(const FeatureSet &Features,
                                    Deadline Until) {
  Codec->cleanUp();
  for (const TensorView &Feature : Features.tensors())
    Codec->setFeature(Feature);
  Expected<std::size_t> Bound = Codec->getMaxSerializedSize();
  if (!Bound)
    return Bound.takeError();
  if (auto Pieces = Codec->getSerializedPieces(); !Pieces.empty())
    return Channel->send(Pieces, Until);
  Expected<Span<std::byte>> Region = Channel->acquire(*Bound);
  if (!Region)
    return Region.takeError();
  Expected<std::size_t> Size = Codec->getSerializedData(*Region);
  if (!Size)
    return Size.takeError();
  return Channel->commit(*Size, Until);
}

Expected<Advice> InterProcessModelRunner::evaluateUntyped(
    const FeatureSet &Features, const AdviceSpec &Wanted, Deadline Until) {
  if (!Channel->isConnected()) {
    if (Error E = connect(Wanted))
      return E;
    // Waiting for the model to start is not waiting for its answer.
    Until = Deadline::in(timeout());
  }
  if (Error E = send(Features, Until)) {
    Channel->close();
    return E;
  }
  Expected<Span<const std::byte>> Reply = Channel->receive(Until);
  if (!Reply) {
    Channel->close();
    Error E = Reply.takeError();
    if (E.code() != ErrorCode::Timeout)
      return E;
    return Error(E.code(), E.message() + "; timeout= gives it longer");
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
