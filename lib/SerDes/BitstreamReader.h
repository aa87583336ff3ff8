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

#include "MLCompilerBridge/BitstreamSerDes.h"
#include "SerDes/BitstreamHeader.h"

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
  Expected<Span<const TensorView>> readFramed(std::string_view Message);
  Expected<Span<const TensorView>> readRaw(Span<const std::byte> Message,
                                           const AdviceSpec &Wanted);
  Error readHeader(std::string_view Message);
  Error checkPayload(std::string_view Payload) const;

  bool IsRaw = false;
  /// The header of the last good message, with its newline; empty if there was
  /// none.
  std::string Line;
  serdes::BitstreamHeader Header;
  std::vector<TensorView> Views;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMREADER_H
