//===- Main.cpp - A user of the component Protobuf ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes a message of this project with ProtobufSerDes and reads it with
/// protoc's code.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/ProtobufSerDes.h"

#include "outside.pb.h"

#include <cstdio>

using namespace MLBridge;

int main() {
  SerDesFactory Formats;
  addProtobuf<outside::Features, outside::Decision>(Formats);
  auto Codec = Formats.create("protobuf:outside.Features/outside.Decision",
                              SerDes::Side::Compiler);
  if (!Codec)
    return std::fprintf(stderr, "%s\n", Codec.takeError().str().c_str()), 1;
  FeatureSet Set;
  Set.set("callee_size", 12);
  Set.set("embedding", std::vector<float>{0.5f, 1.5f});
  for (const TensorView &Feature : Set.tensors())
    (*Codec)->setFeature(Feature);
  std::string Message(*(*Codec)->getMaxSerializedSize(), '\0');
  auto Size = (*Codec)->getSerializedData(
      {reinterpret_cast<std::byte *>(Message.data()), Message.size()});
  outside::Features Read;
  bool IsRight = Size && Read.ParseFromArray(Message.data(), int(*Size)) &&
                 Read.callee_size() == 12 && Read.embedding_size() == 2;
  std::printf("%s\n", Read.ShortDebugString().c_str());
  return IsRight ? 0 : 1;
}
