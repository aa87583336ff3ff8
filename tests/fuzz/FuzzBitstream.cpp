//===- FuzzBitstream.cpp - Any bytes as a bitstream message ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as a sequence of bitstream messages: in this
/// library's dialect, as requests of a foreign compiler, and as replies of a
/// foreign model. If a message can be read, it must survive a round trip.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"

#include "Fuzz.h"

using namespace MLBridge;
using namespace MLBridge::fuzz;

namespace {

struct BareSides {
  BitstreamSerDes Compiler, Model;

  BareSides() {
    Compiler.setDialect(BaseSerDes::Dialect::BareCompiler);
    Model.setDialect(BaseSerDes::Dialect::BareModel);
  }

  /// Requires that \p Tensors survive as a request to a foreign model, which
  /// reads a scalar as a list of one element.
  void requireRoundTrip(Span<const TensorView> Tensors) {
    Message Written = requireWritten(Compiler, Tensors);
    Result Read = Model.deserialize(Written.bytes());
    require(bool(Read), "a bare request can be read", Read.message());
    std::vector<TensorView> Expected(Tensors.begin(), Tensors.end());
    for (TensorView &Tensor : Expected)
      if (Tensor.Type != ElementType::String && Tensor.Dims.isScalar())
        Tensor.Dims = {1};
    require(test::difference(Expected, *Read).empty(),
            "a bare request keeps its values",
            test::difference(Expected, *Read));
  }

  /// Reads \p M as a raw reply. If this succeeds, requires that the value gives
  /// the same bytes when it is written again.
  void testReply(const Message &M, const AdviceSpec &Wanted) {
    Result Read = Compiler.deserialize(M.bytes(), Wanted);
    if (Read)
      require(requireWritten(Model, *Read).text() == M.text(),
              "a raw reply keeps its bytes");
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  static const AdviceSpec Types[] = {
      AdviceSpec::any(),
      AdviceSpec::of<float>(),
      AdviceSpec::of<bool>(),
      AdviceSpec::of<std::int64_t>(),
      AdviceSpec::of<std::string>(),
      AdviceSpec::of<std::vector<double>>(),
      AdviceSpec::of<std::vector<bool>>(),
      AdviceSpec::of<std::vector<short>>(),
      AdviceSpec::of<std::vector<std::string>>()};
  std::string_view Input(reinterpret_cast<const char *>(Data), Size);
  std::vector<Message> Messages = split(Input);
  Sides<BitstreamSerDes> Ours;
  BareSides Bare;
  BitstreamSerDes Reader;
  std::vector<TensorView> Last;
  std::uint64_t Layout = 0;
  for (const Message &M : Messages) {
    Bare.testReply(M, choose(Types, Input));
    Result Read = Reader.deserialize(M.bytes());
    // Bare requests follow the same rules as requests of this library.
    requireSame(Bare.Model.deserialize(M.bytes()), Read,
                "bare requests are read like ours");
    if (&M != &Messages.front()) {
      BitstreamSerDes Fresh;
      requireSame(Fresh.deserialize(M.bytes()), Read,
                  "messages do not depend on those before");
    }
    if (!Read)
      continue;
    if (Reader.layout() == Layout)
      requireSameViews(Last, *Read, /*InMessage=*/true);
    Layout = Reader.layout();
    Last.assign(Read->begin(), Read->end());
    Ours.requireRoundTrip(*Read);
    Bare.requireRoundTrip(*Read);
  }
  return 0;
}
