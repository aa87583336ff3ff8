//===- FuzzProtobuf.cpp - Any bytes as a generic message ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as a sequence of generic Protobuf messages. If a
/// message can be read, it must survive a round trip.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"

#include "Fuzz.h"

using namespace MLBridge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  fuzz::testFormat({reinterpret_cast<const char *>(Data), Size},
                   [] { return std::make_unique<ProtobufSerDes>(); });
  return 0;
}
