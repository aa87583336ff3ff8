//===- BitstreamHeader.h - The header line, read ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BitstreamHeader: the parsed form of the line that names a message's tensors.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// The longest header line, in bytes; enough for 200,000 features. simdjson
/// needs several times as much memory as the text that it reads, so a line from
/// a hostile peer must not be as long as a message may be.
inline constexpr std::size_t MaxBitstreamHeader = std::size_t(16) << 20;

/// What a header line says of its tensors. Parsing again allocates only where a
/// header is longer than any before.
class BitstreamHeader {
public:
  /// One tensor, at Offset bytes behind the header.
  struct Feature {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    Shape Dims;
    std::size_t Offset = 0;
    std::size_t NumBytes = 0;
    /// Where in the lengths of all lists those of this one are.
    std::size_t FirstLength = 0;
    std::size_t NumLengths = 0;
  };

  /// What parsing needs; one serves any number of headers.
  struct Tools {
    JSONParser Parser;
    DuplicateFinder Duplicates;
  };
  /// Parses \p Line, which is without its newline, but followed by
  /// BaseSerDes::Padding readable bytes. After an error there are no features.
  Error parse(std::string_view Line, Tools &With);

  Span<const Feature> features() const { return {Features.data(), Count}; }
  Span<const std::uint64_t> lengthsOf(const Feature &F) const {
    return {Lengths.data() + F.FirstLength, F.NumLengths};
  }
  /// The bytes of all tensors together.
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

  /// Features behind the first Count are of older headers, kept for their
  /// memory.
  std::vector<Feature> Features;
  std::size_t Count = 0;
  std::vector<std::uint64_t> Lengths;
  std::size_t PayloadSize = 0;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMHEADER_H
