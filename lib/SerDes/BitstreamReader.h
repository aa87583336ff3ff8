//===- BitstreamReader.h - Reads bitstream messages -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BitstreamSerDes::Reader: reads bitstream messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "SerDes/BitstreamHeader.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace MLBridge {

class BitstreamSerDes::Reader {
public:
  /// Selects raw messages, which are bytes of a type that the caller knows: the
  /// replies of foreign models.
  void setRaw(bool Raw) { IsRaw = Raw; }

  /// Returns the tensors in \p Message as views into it.
  Expected<Span<const TensorView>> read(Span<const std::byte> Message,
                                        const AdviceSpec &Wanted);
  std::uint64_t layout() const { return Layout; }

private:
  /// A header line, with its newline, and its parsed form.
  struct Schema {
    std::string Line;
    serdes::BitstreamHeader Header;
    std::vector<TensorView> Views;
    std::uint64_t Layout = 0;
  };

  Expected<Span<const TensorView>> readFramed(std::string_view Message);
  Expected<Span<const TensorView>> readRaw(Span<const std::byte> Message,
                                           const AdviceSpec &Wanted);
  /// Makes the schema of \p Message current.
  Error findSchema(std::string_view Message);
  /// Parses Line, which is not in Known, and makes its schema current.
  Error parseSchema();
  Error checkPayload(std::string_view Payload) const;

  bool IsRaw = false;
  serdes::BitstreamHeader::Tools Tools;
  /// The schema of the last message; null if its header was malformed.
  Schema *Current = nullptr;
  /// Recent schemas by their lines, so that a compiler that alternates between
  /// shapes has each header parsed once. The limits bound the memory that a
  /// peer can make this process keep.
  std::unordered_map<std::string_view, std::unique_ptr<Schema>> Known;
  static constexpr std::size_t MaxKnown = 256;
  static constexpr std::size_t MaxKnownLine = 1024;
  /// The schema of a line longer than MaxKnownLine.
  Schema Single;
  /// A copy of the line to look up or parse.
  std::string Line;
  std::uint64_t NumLayouts = 0;

  /// The one tensor of a raw reply.
  std::vector<TensorView> Raw;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H
