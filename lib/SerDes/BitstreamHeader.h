//===- BitstreamHeader.h - Parses a message's header ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BitstreamHeader: parses the header line of a bitstream message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// The length limit of a header line, in bytes. A line of this length describes
/// about 200,000 features. The limit is lower than the limit on messages,
/// because simdjson needs several times the memory of its input, and the input
/// may come from a hostile peer.
inline constexpr std::size_t MaxBitstreamHeader = std::size_t(16) << 20;

/// The tensors that a header line describes. The object can parse many lines.
/// It allocates memory only for a line that is longer than all earlier lines.
class BitstreamHeader {
public:
  /// One tensor. Its data starts Offset bytes after the header.
  struct Feature {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    Shape Dims;
    std::size_t Offset = 0;
    std::size_t NumBytes = 0;
    /// The part of Lengths that belongs to a list of strings. Lengths contains
    /// the lengths of the strings of all lists.
    std::size_t FirstLength = 0;
    std::size_t NumLengths = 0;
  };

  /// The objects that parsing needs. Reuse them for many lines.
  struct Tools {
    JSONParser Parser;
    DuplicateFinder Duplicates;
  };
  /// Parses \p Line, which does not contain its newline. BaseSerDes::Padding
  /// readable bytes must follow the line. Returns a Malformed error if the line
  /// is wrong, or an Unsupported error if a shape has more than Shape::MaxRank
  /// extents. After an error, features() is empty.
  Error parse(std::string_view Line, Tools &With);

  Span<const Feature> features() const { return {Features.data(), Count}; }
  Span<const std::uint64_t> lengthsOf(const Feature &F) const {
    return {Lengths.data() + F.FirstLength, F.NumLengths};
  }
  /// Returns the total size of all tensors, in bytes.
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

  /// The first Count elements are the header's features. The remaining elements
  /// are kept only so that their memory can be reused.
  std::vector<Feature> Features;
  std::size_t Count = 0;
  std::vector<std::uint64_t> Lengths;
  std::size_t PayloadSize = 0;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
