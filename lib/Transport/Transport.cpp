//===- Transport.cpp - Frames of bytes to a peer and back -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport.h"

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
