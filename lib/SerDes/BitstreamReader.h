//===- BitstreamReader.h - A bitstream message to tensors -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reading half of BitstreamSerDes.
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
  /// Whether messages are raw bytes, of a type that the caller knows: the
  /// replies of foreign models.
  void setRaw(bool Raw) { IsRaw = Raw; }

  /// The tensors in \p Message, as views into it.
  Expected<Span<const TensorView>> read(Span<const std::byte> Message,
                                        const AdviceSpec &Wanted);
  std::uint64_t layout() const { return Layout; }

private:
  /// A header line, with its newline, and what it says.
  struct Schema {
    std::string Line;
    serdes::BitstreamHeader Header;
    std::vector<TensorView> Views;
    std::uint64_t Layout = 0;
  };

  Expected<Span<const TensorView>> readFramed(std::string_view Message);
  Expected<Span<const TensorView>> readRaw(Span<const std::byte> Message,
                                           const AdviceSpec &Wanted);
  /// Makes the schema of \p Message the current one.
  Error findSchema(std::string_view Message);
  /// The same for that of Line, which is not known yet.
  Error parseSchema();
  Error checkPayload(std::string_view Payload) const;

  bool IsRaw = false;
  serdes::BitstreamHeader::Tools Tools;
  /// Of the last message that had one; null if that was no good.
  Schema *Current = nullptr;
  /// Those seen lately, by their lines: a compiler that goes back and forth
  /// between features of several shapes has each parsed once. Long lines are
  /// not kept, so that a peer cannot have us keep much.
  std::unordered_map<std::string_view, std::unique_ptr<Schema>> Known;
  static constexpr std::size_t MaxKnown = 256;
  static constexpr std::size_t MaxKnownLine = 1024;
  /// For the others.
  Schema Single;
  /// What is looked for, and parsed.
  std::string Line;
  std::uint64_t NumLayouts = 0;

  /// The one tensor of a raw reply.
  std::vector<TensorView> Raw;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H
