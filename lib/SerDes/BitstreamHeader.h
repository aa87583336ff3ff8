//===- BitstreamHeader.h - Parses a message's header ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BitstreamHeader: the parsed header line of a bitstream message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// The longest header line, in bytes; enough for 200,000 features. Shorter than
/// the limit on messages, because simdjson needs several times the memory of
/// its input, which may come from a hostile peer.
inline constexpr std::size_t MaxBitstreamHeader = std::size_t(16) << 20;

/// The tensors that a header line describes. Parsing another line allocates
/// only if it is longer than all lines before.
class BitstreamHeader {
public:
  /// One tensor, whose data starts Offset bytes after the header.
  struct Feature {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    Shape Dims;
    std::size_t Offset = 0;
    std::size_t NumBytes = 0;
    /// For a list of strings: the range of its lengths in the array of all
    /// lists' lengths.
    std::size_t FirstLength = 0;
    std::size_t NumLengths = 0;
  };

  /// Reusable objects that parsing needs.
  struct Tools {
    JSONParser Parser;
    DuplicateFinder Duplicates;
  };
  /// Parses \p Line, which excludes its newline and is followed by
  /// BaseSerDes::Padding readable bytes. Errors: Malformed; Unsupported for
  /// more than Shape::MaxRank extents. After an error, features() is empty.
  Error parse(std::string_view Line, Tools &With);

  Span<const Feature> features() const { return {Features.data(), Count}; }
  Span<const std::uint64_t> lengthsOf(const Feature &F) const {
    return {Lengths.data() + F.FirstLength, F.NumLengths};
  }
  /// The total size of all tensors, in bytes.
  std::size_t payloadSize() const { return PayloadSize; }

private:
  struct Fields;

  Error parseDocument(std::string_view Line, Tools &With);
  Error parseFeatures(ondemand::value List);
  Error parseFeature(ondemand::object Object, Feature &Out);
  Error parseField(std::string_view Key, ondemand::value Value, Feature &Out,
                   Fields &Seen);
  Error resolve(const Fields &Seen, Feature &Out);
  Error resolveStrings(const Fields &Seen, Feature &Out);

  /// Features after the first Count belong to older headers; they keep their
  /// memory for reuse.
  std::vector<Feature> Features;
  std::size_t Count = 0;
  std::vector<std::uint64_t> Lengths;
  std::size_t PayloadSize = 0;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
