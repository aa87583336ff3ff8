//===- FuzzJSON.cpp - Any bytes as a JSON message -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as a sequence of JSON messages, for various expected
/// types. If a message can be read, it must survive a round trip between the
/// two sides of this library. It must also keep its values on the way to a
/// foreign peer and back.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/JSONSerDes.h"

#include "Fuzz.h"

using namespace MLBridge;
using namespace MLBridge::fuzz;

namespace {

/// A foreign peer, which echoes a message without "_types".
struct BareSides {
  JSONSerDes Writer, Reader;

  BareSides() {
    Writer.setDialect(BaseSerDes::Dialect::BareCompiler);
    Reader.setDialect(BaseSerDes::Dialect::BareModel);
  }

  /// Requires that the message can be read. If the caller expects the type of
  /// the only tensor, reading must restore the tensor.
  void requireRoundTrip(Span<const TensorView> Tensors) {
    Message Written = requireWritten(Writer, Tensors);
    Result Read = Reader.deserialize(Written.bytes());
    require(bool(Read), "a bare message can be read", Read.message());
    require(Read->size() == Tensors.size(), "a bare message has all tensors");
    if (Tensors.size() != 1 || Tensors[0].Name.starts_with('_') ||
        Tensors[0].numElements() == 0)
      return;
    AdviceSpec Wanted{AdviceSpec::Form::List, Tensors[0].Type};
    Read = Reader.deserialize(Written.bytes(), Wanted);
    require(bool(Read), "a bare message can be read with its type",
            Read.message());
    require(test::difference(Tensors, *Read).empty(),
            "a bare message keeps its values", Written.text());
  }
};

/// Reads \p Messages in turn. Each message is expected to contain \p Wanted.
void readAll(const std::vector<Message> &Messages, const AdviceSpec &Wanted) {
  Sides<JSONSerDes> Ours;
  BareSides Bare;
  JSONSerDes Reader;
  std::vector<TensorView> Last;
  std::uint64_t Layout = 0;
  for (const Message &M : Messages) {
    Result Read = Reader.deserialize(M.bytes(), Wanted);
    if (&M != &Messages.front()) {
      JSONSerDes Fresh;
      requireSame(Fresh.deserialize(M.bytes(), Wanted), Read,
                  "messages do not depend on those before");
    }
    if (!Read)
      continue;
    if (Reader.layout() == Layout)
      requireSameViews(Last, *Read, /*InMessage=*/false);
    Layout = Reader.layout();
    Last.assign(Read->begin(), Read->end());
    Ours.requireRoundTrip(*Read);
    Bare.requireRoundTrip(*Read);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  static const AdviceSpec Types[] = {
      AdviceSpec::of<float>(),         AdviceSpec::of<double>(),
      AdviceSpec::of<std::int8_t>(),   AdviceSpec::of<std::int64_t>(),
      AdviceSpec::of<std::uint64_t>(), AdviceSpec::of<bool>(),
      AdviceSpec::of<std::string>()};
  std::string_view Input(reinterpret_cast<const char *>(Data), Size);
  std::vector<Message> Messages = split(Input);
  readAll(Messages, AdviceSpec::any());
  readAll(Messages, choose(Types, Input));
  return 0;
}
