//===- Transport.cpp - Frames of bytes to a peer and back -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport.h"

#include <cstring>

using namespace MLBridge;

Transport::~Transport() = default;

Error Transport::send(Span<const std::byte> Message, Deadline Until) {
  Expected<Span<std::byte>> Region = acquire(Message.size());
  if (!Region)
    return Region.takeError();
  if (!Message.empty())
    std::memcpy(Region->data(), Message.data(), Message.size());
  return commit(Message.size(), Until);
}
