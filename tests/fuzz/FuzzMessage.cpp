//===- FuzzMessage.cpp - Any bytes as a user's message --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads any bytes as the messages of tests/unit/features.proto, one after
/// another. Whatever can be read must survive a round trip, and protoc's
/// generated code must be able to read what we write.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"

#include "Fuzz.h"
#include "features.pb.h"

using namespace MLBridge;
using namespace MLBridge::fuzz;

/// Both sides write and read the same message.
static std::unique_ptr<BaseSerDes> make() {
  static const SerDesFactory Formats = [] {
    SerDesFactory Made;
    addProtobuf<::test::Features, ::test::Features>(Made);
    return Made;
  }();
  return std::move(*Formats.create("protobuf:test.Features/test.Features",
                                   SerDes::Side::Compiler));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  std::string_view Input(reinterpret_cast<const char *>(Data), Size);
  testFormat(Input, make);
  for (const Message &M : split(Input)) {
    std::unique_ptr<BaseSerDes> Codec = make();
    if (Result Read = Codec->deserialize(M.bytes())) {
      Message Written = requireWritten(*make(), *Read);
      ::test::Features Theirs;
      require(Theirs.ParseFromArray(Written.text().data(),
                                    static_cast<int>(Written.text().size())),
              "protoc's code reads what we write");
    }
  }
  return 0;
}
