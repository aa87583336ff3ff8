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
  /// Selects whether messages are raw. A raw message consists only of the bytes
  /// of one tensor, whose type the caller specifies. Foreign models send raw
  /// replies.
  void setRaw(bool Raw) { IsRaw = Raw; }

  /// Returns the tensors in \p Message. Their data points into the message.
  Expected<Span<const TensorView>> read(Span<const std::byte> Message,
                                        const AdviceSpec &Wanted);
  std::uint64_t layout() const { return Layout; }

private:
  /// A header line and its parsed form. The line includes its newline.
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
  /// The schema of the last message. Null if its header was malformed.
  Schema *Current = nullptr;
  /// Maps the lines of recent headers to their schemas. Therefore, if a
  /// compiler alternates between several shapes, each header is parsed only
  /// once. The limits bound the memory that a peer can occupy.
  std::unordered_map<std::string_view, std::unique_ptr<Schema>> Known;
  static constexpr std::size_t MaxKnown = 256;
  static constexpr std::size_t MaxKnownLine = 1024;
  /// The schema of a line longer than MaxKnownLine.
  Schema Single;
  /// A copy of the header line that is being looked up or parsed.
  std::string Line;
  std::uint64_t NumLayouts = 0;

  /// The only tensor of a raw reply.
  std::vector<TensorView> Raw;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H
