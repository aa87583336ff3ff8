//===- Transport.cpp - Frames of bytes to a peer and back -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/Transport.h"

#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "Transport/SendMessage.h"
#include "Transport/ServerChannel.h"

using namespace MLBridge;

Transport::~Transport() = default;
ServerChannel::~ServerChannel() = default;

Error Transport::send(Span<const Span<const std::byte>> Pieces,
                      Deadline Until) {
  return sendGathered(*this, Pieces, Until);
}

Error ServerChannel::send(Span<const Span<const std::byte>> Pieces,
                          Duration Within) {
  return sendGathered(*this, Pieces, Within);
}

Expected<TransportOptions> ModelSpec::transportOptions() const {
  TransportOptions Result;
  Expected<Duration> Connect = duration("connect", Result.ConnectTimeout);
  if (!Connect)
    return Connect.takeError();
  Result.ConnectTimeout = *Connect;
  Expected<std::size_t> MaxMessage = bytes("max-message", Result.MaxMessage);
  if (!MaxMessage)
    return MaxMessage.takeError();
  Result.MaxMessage = *MaxMessage;
  return Result;
}
