//===- FuzzFlatBuffers.cpp - Any bytes as a FlatBuffers message -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as a sequence of FlatBuffers messages. If a message
/// can be read, it must survive a round trip.
///
//===----------------------------------------------------------------------===//

#include "FlatBuffersSerDes.h"

#include "Fuzz.h"

using namespace MLBridge;

static std::unique_ptr<BaseSerDes> make() {
  static const SerDesFactory Formats = [] {
    SerDesFactory Made;
    addFlatBuffers(Made);
    return Made;
  }();
  return std::move(*Formats.create("flatbuffers", SerDes::Side::Model));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  fuzz::testFormat({reinterpret_cast<const char *>(Data), Size}, make);
  return 0;
}
