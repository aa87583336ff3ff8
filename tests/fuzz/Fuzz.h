//===- Fuzz.h - Shared code of the decoders' fuzzers ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks properties that a SerDes must have for any bytes. If an input breaks
/// a property, the fuzzer prints the property and aborts.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FUZZ_FUZZ_H
#define MLBRIDGE_TESTS_FUZZ_FUZZ_H

#include "support/Messages.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace MLBridge::fuzz {

using test::Message;
using Result = Expected<Span<const TensorView>>;

inline void require(bool Holds, const char *Property,
                    std::string_view Details = {}) {
  if (Holds)
    return;
  std::fprintf(stderr, "broken: %s: %.*s\n", Property,
               static_cast<int>(Details.size()), Details.data());
  std::abort();
}

/// Splits \p Input into up to six messages, which one reader decodes in turn.
/// The separator FF FE cannot occur in JSON. More messages would be mostly
/// empty and only take time.
inline std::vector<Message> split(std::string_view Input) {
  constexpr std::string_view Separator = "\xff\xfe";
  constexpr std::size_t MaxMessages = 6;
  std::vector<Message> Messages;
  for (;;) {
    std::size_t End = Input.find(Separator);
    Messages.emplace_back(Input.substr(0, End));
    if (End == Input.npos || Messages.size() == MaxMessages)
      return Messages;
    Input.remove_prefix(End + Separator.size());
  }
}

/// Returns one of \p Choices, selected by a hash of \p Input. To try all
/// choices with every input would take several times as long and find the same
/// errors.
template <typename T, std::size_t N>
const T &choose(const T (&Choices)[N], std::string_view Input) {
  return Choices[std::hash<std::string_view>()(Input) % N];
}

/// Requires that both results have the same tensors or the same error.
inline void requireSame(const Result &A, const Result &B,
                        const char *Property) {
  require(A.code() == B.code(), Property, A.message());
  require(A.message() == B.message(), Property, A.message());
  if (A && B)
    require(test::difference(*A, *B).empty(), Property,
            test::difference(*A, *B));
}

/// Writes \p Tensors with \p Writer and requires that this succeeds.
inline Message requireWritten(BaseSerDes &Writer,
                              Span<const TensorView> Tensors) {
  Expected<Message> Written = test::serialize(Writer, Tensors);
  require(bool(Written), "what was read can be written", Written.message());
  return std::move(*Written);
}

/// The codecs of both sides. They are made once for each input, because their
/// memory of earlier messages is part of the test.
template <typename Codec> struct Sides {
  Codec Writer, Reader, Again;

  /// Writes \p Tensors, reads the message and requires equal tensors. Two
  /// writers that write these tensors must produce the same bytes.
  void requireRoundTrip(Span<const TensorView> Tensors) {
    Message Written = requireWritten(Writer, Tensors);
    Result Read = Reader.deserialize(Written.bytes());
    require(bool(Read), "what was written can be read", Read.message());
    require(test::difference(Tensors, *Read).empty(),
            "a round trip changes nothing", test::difference(Tensors, *Read));
    require(requireWritten(Writer, *Read).text() ==
                requireWritten(Again, *Read).text(),
            "the same tensors give the same bytes");
  }
};

/// Requires that two messages with one layout have the same views. Only the
/// address of data may differ, and only if \p InMessage is true.
inline void requireSameViews(Span<const TensorView> Before,
                             Span<const TensorView> After, bool InMessage) {
  require(Before.size() == After.size(), "same layout, same number");
  for (std::size_t I = 0; I < Before.size(); ++I) {
    const TensorView &A = Before[I], &B = After[I];
    require(A.Type == B.Type && A.Dims == B.Dims && A.NumBytes == B.NumBytes,
            "same layout, same type and shape");
    require(InMessage || A.Data == B.Data, "same layout, same address");
    require(A.Lengths.data() == B.Lengths.data(), "same layout, same lengths");
  }
}

/// Reads the messages in \p Input in turn, with SerDes from \p Make. The SerDes
/// must have a single dialect. Its views must point into the message, or into
/// memory that is allocated anew for each message.
template <typename F> void testFormat(std::string_view Input, F Make) {
  std::unique_ptr<BaseSerDes> Reader = Make(), Writer = Make(), Other = Make();
  std::vector<TensorView> Last;
  std::uint64_t Layout = 0;
  for (const Message &M : split(Input)) {
    Result Read = Reader->deserialize(M.bytes());
    std::unique_ptr<BaseSerDes> Fresh = Make();
    requireSame(Fresh->deserialize(M.bytes()), Read,
                "messages do not depend on those before");
    if (!Read)
      continue;
    if (Reader->layout() == Layout)
      requireSameViews(Last, *Read, /*InMessage=*/true);
    Layout = Reader->layout();
    Last.assign(Read->begin(), Read->end());

    Message Written = requireWritten(*Writer, *Read);
    Result Again = Other->deserialize(Written.bytes());
    require(bool(Again), "what was written can be read", Again.message());
    std::string Changed = test::difference(*Read, *Again);
    // YAML has only one NaN, so the bits of a NaN may change.
    if (Reader->name() != "yaml")
      require(Changed.empty(), "a round trip changes nothing", Changed);
    Message Same = requireWritten(*Writer, *Again);
    require(Same.text().size() == Written.text().size(),
            "writing again keeps the size");
    require(Same.text() == requireWritten(*Other, *Again).text(),
            "the same tensors give the same bytes");
  }
}

} // namespace MLBridge::fuzz

#endif // MLBRIDGE_TESTS_FUZZ_FUZZ_H
