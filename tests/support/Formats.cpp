//===- Formats.cpp - Every SerDes of this build ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Formats.h"

#ifdef MLBRIDGE_WITH_PROTOBUF
#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#endif
#ifdef MLBRIDGE_WITH_YAML
#include "YAMLSerDes.h"
#endif
#ifdef MLBRIDGE_WITH_FLATBUFFERS
#include "FlatBuffersSerDes.h"
#endif

using namespace MLBridge;

SerDesFactory test::allFormats() {
  SerDesFactory All;
#ifdef MLBRIDGE_WITH_PROTOBUF
  addProtobuf(All);
#endif
#ifdef MLBRIDGE_WITH_YAML
  addYAML(All);
#endif
#ifdef MLBRIDGE_WITH_FLATBUFFERS
  addFlatBuffers(All);
#endif
  return All;
}
