//===- FuzzMessage.cpp - Any bytes as a user's message --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as messages of tests/unit/features.proto and of
/// tests/unit/graph.proto. If a message can be read, it must survive a round
/// trip, and protoc's generated code must be able to read the messages that
/// this library writes.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"

#include "Fuzz.h"
#include "MutateMessage.h"
#include "features.pb.h"
#include "graph.pb.h"

using namespace MLBridge;
using namespace MLBridge::fuzz;

/// Makes a SerDes whose two sides write and read the same message.
template <typename MessageT> static std::unique_ptr<BaseSerDes> makeFor() {
  static const SerDesFactory Formats = [] {
    SerDesFactory Made;
    addProtobuf<MessageT, MessageT>(Made);
    return Made;
  }();
  const std::string Name = MessageT::descriptor()->full_name();
  return std::move(
      *Formats.create("protobuf:" + Name + "/" + Name, SerDes::Side::Compiler));
}

template <typename MessageT> static void testMessage(std::string_view Input) {
  testFormat(Input, makeFor<MessageT>);
  std::unique_ptr<BaseSerDes> Reader = makeFor<MessageT>();
  std::unique_ptr<BaseSerDes> Writer = makeFor<MessageT>();
  for (const Message &M : split(Input)) {
    if (Result Read = Reader->deserialize(M.bytes())) {
      Message Written = requireWritten(*Writer, *Read);
      MessageT Theirs;
      require(Theirs.ParseFromArray(Written.text().data(),
                                    static_cast<int>(Written.text().size())),
              "protoc's code reads what we write");
    }
  }
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *Data,
                                               std::size_t Size,
                                               std::size_t MaxSize,
                                               unsigned Seed) {
  static constexpr const char *Strings[] = {"", "a", "b", "ç"};
  static constexpr std::int64_t Numbers[] = {0, 1, -1, 5, 1ll << 31, 1ll << 62};
  return mutateMessage<::test::GraphFeatures>({Strings, Numbers}, Data, Size,
                                              MaxSize, Seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  std::string_view Input(reinterpret_cast<const char *>(Data), Size);
  static constexpr void (*Tests[])(std::string_view) = {
      testMessage<::test::Features>, testMessage<::test::GraphFeatures>};
  choose(Tests, Input)(Input);
  return 0;
}
