//===- BitstreamWriter.cpp - Writes bitstream messages --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes a header line and raw tensors. The format is specified in
/// docs/reference/wire-format.md.
///
//===----------------------------------------------------------------------===//

#include "SerDes/BitstreamWriter.h"

#include "SerDes/BitstreamHeader.h"
#include "SerDes/JSONText.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::serdes;

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

/// Returns the type that represents \p Type in a message. Messages contain only
/// numeric types.
static ElementType wireType(ElementType Type) {
  return Type == ElementType::Bool || Type == ElementType::String
             ? ElementType::UInt8
             : Type;
}

static void appendIntegers(std::string &Out, const auto &Integers) {
  Out += '[';
  const char *Separator = "";
  for (auto Integer : Integers) {
    Out += Separator;
    appendInteger(Out, Integer);
    Separator = ",";
  }
  Out += ']';
}

static void appendFeature(std::string &Out, const TensorView &Feature,
                          bool ScalarsAreLists) {
  Out += "{\"name\":";
  appendQuoted(Out, Feature.Name);
  Out += ",\"port\":0,\"type\":\"";
  Out += elementTypeName(wireType(Feature.Type));
  Out += "\",\"shape\":";
  if (Feature.Type == ElementType::String)
    appendIntegers(Out, Shape{static_cast<std::int64_t>(Feature.NumBytes)});
  else if (Feature.Dims.isScalar() && ScalarsAreLists)
    appendIntegers(Out, Shape{1});
  else
    appendIntegers(Out, Feature.Dims);
  if (Feature.Type == ElementType::Bool) {
    Out += ",\"semantics\":\"bool\"";
  } else if (Feature.isStringList()) {
    Out += ",\"semantics\":\"strings\",\"lengths\":";
    appendIntegers(Out, Feature.Lengths);
  } else if (Feature.Type == ElementType::String) {
    Out += ",\"semantics\":\"string\"";
  }
  Out += '}';
}

template <typename F>
void BitstreamSerDes::Writer::forEachInWireOrder(
    Span<const TensorView> Features, F Do) const {
  if (Dialect != Form::Native) {
    for (const TensorView &Feature : Features)
      Do(Feature);
    return;
  }
  // Write large elements first. In this order, every tensor is aligned to its
  // element size, and there are no gaps.
  for (std::size_t Size : {8, 4, 2, 1})
    for (const TensorView &Feature : Features)
      if (elementSize(Feature.Type) == Size)
        Do(Feature);
}

void BitstreamSerDes::Writer::makeHeader(Span<const TensorView> Features) {
  Header = "{\"features\":[";
  const char *Separator = "";
  forEachInWireOrder(Features, [&](const TensorView &Feature) {
    Header += Separator;
    appendFeature(Header, Feature,
                  /*ScalarsAreLists=*/Dialect == Form::BareRequest);
    Separator = ",";
  });
  Header += "]}";
  if (Dialect == Form::Native) {
    constexpr std::size_t Alignment = 64;
    std::size_t Unpadded = MessageOffset + Header.size() + 1;
    Header.append(-Unpadded % Alignment, ' ');
  }
  Header += '\n';
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

/// Checks that a reply can be sent to a foreign compiler. Foreign compilers
/// read only the bytes of one tensor, whose type they already know.
static Error checkBareReply(Span<const TensorView> Features) {
  auto Cannot = [](const std::string &What) {
    return Error(ErrorCode::Unsupported,
                 "a bare reply consists of the bytes of one tensor; " + What);
  };
  if (Features.size() != 1)
    return Cannot("this one has " + std::to_string(Features.size()) +
                  " tensors");
  const TensorView &Reply = Features.front();
  if (Reply.Name == ReplyNames::Error || Reply.Name == ReplyNames::Deferred)
    return Cannot("it cannot express " + quoted(Reply.Name) +
                  (Reply.Type == ElementType::String
                       ? ": " + printable(Reply.text())
                       : std::string()));
  if (Reply.isStringList())
    return Cannot("it cannot contain the lengths of " + Reply.typeStr());
  return checkForm(Reply);
}

Expected<std::size_t>
BitstreamSerDes::Writer::prepare(Span<const TensorView> Features) {
  if (Dialect == Form::BareReply) {
    if (Error E = checkBareReply(Features))
      return E;
  } else {
    Expected<bool> IsNew = Last.update(Features);
    if (!IsNew) {
      Header.clear();
      return IsNew.takeError();
    }
    if (*IsNew || Header.empty())
      makeHeader(Features);
    if (Header.size() > MaxBitstreamHeader)
      return Error(ErrorCode::InvalidArgument,
                   "a bitstream header of " + std::to_string(Header.size()) +
                       " bytes exceeds the limit of " +
                       std::to_string(MaxBitstreamHeader));
  }
  std::size_t Size = Header.size();
  for (const TensorView &Feature : Features) {
    if (Error E = checkElements(Feature, ErrorCode::InvalidArgument))
      return E;
    Size += Feature.NumBytes;
  }
  return Dialect == Form::BareReply ? Size : Size + 1;
}

Span<const Span<const std::byte>>
BitstreamSerDes::Writer::pieces(Span<const TensorView> Features) {
  // The smallest average size in bytes for which sending pieces is faster than
  // copying. Copying this number of bytes takes as long as passing one more
  // piece to the kernel.
  constexpr std::size_t MinPiece = 2048;
  std::size_t Size = 0;
  for (const TensorView &Feature : Features)
    Size += Feature.NumBytes;
  if (Size < MinPiece * (Features.size() + 1))
    return {};

  Pieces.clear();
  auto Add = [&](const void *Data, std::size_t NumBytes) {
    Pieces.emplace_back(static_cast<const std::byte *>(Data), NumBytes);
  };
  Add(Header.data(), Header.size());
  forEachInWireOrder(Features, [&](const TensorView &Feature) {
    Add(Feature.Data, Feature.NumBytes);
  });
  if (Dialect != Form::BareReply)
    Add("\n", 1);
  return Pieces;
}

/// Writes only the cache lines of the header that differ from the previous
/// header in \p Out. A cache line that is not written stays in the caches of
/// both sides.
void BitstreamSerDes::Writer::updateHeader(std::byte *Out) const {
  constexpr std::size_t Line = 64;
  for (std::size_t Begin = 0, End = Line - MessageOffset; Begin < Header.size();
       Begin = End, End += Line) {
    const std::size_t NumBytes = std::min(End, Header.size()) - Begin;
    if (std::memcmp(Out + Begin, Header.data() + Begin, NumBytes) != 0)
      std::memcpy(Out + Begin, Header.data() + Begin, NumBytes);
  }
}

std::size_t BitstreamSerDes::Writer::write(Span<const TensorView> Features,
                                           std::byte *Out, bool IsKept) const {
  std::byte *Next = Out;
  auto Put = [&](const void *Data, std::size_t NumBytes) {
    if (NumBytes != 0)
      std::memcpy(Next, Data, NumBytes);
    Next += NumBytes;
  };
  if (IsKept) {
    updateHeader(Next);
    Next += Header.size();
  } else {
    Put(Header.data(), Header.size());
  }
  forEachInWireOrder(Features, [&](const TensorView &Feature) {
    Put(Feature.Data, Feature.NumBytes);
  });
  if (Dialect != Form::BareReply)
    Put("\n", 1);
  return static_cast<std::size_t>(Next - Out);
}
