//===- Transport.cpp - Frames of bytes to a peer and back -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport.h"

#include <algorithm>

using namespace MLBridge;

Transport::~Transport() = default;

Error Transport::send(Span<const Span<const std::byte>> Pieces,
                      Deadline Until) {
  std::size_t Size = 0;
  for (Span<const std::byte> Piece : Pieces)
    Size += Piece.size();
  Expected<Span<std::byte>> Region = acquire(Size);
  if (!Region)
    return Region.takeError();
  std::byte *Next = Region->data();
  for (Span<const std::byte> Piece : Pieces)
    Next = std::ranges::copy(Piece, Next).out;
  return commit(Size, Until);
}
