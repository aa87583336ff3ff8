//===- BitstreamWriter.h - Writes bitstream messages ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BitstreamSerDes::Writer: writes bitstream messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge {

class BitstreamSerDes::Writer {
public:
  /// The dialects of the format.
  enum class Form {
    /// A padded header, then the tensors in order of decreasing element size.
    /// Therefore, each tensor is aligned.
    Native,
    /// A request for a foreign model. The tensors are in the order in which the
    /// caller added them, scalars are lists of one element, and there is no
    /// padding.
    BareRequest,
    /// A reply for a foreign compiler. It consists only of the bytes of one
    /// tensor.
    BareReply,
  };

  void setForm(Form NewForm) {
    Dialect = NewForm;
    Header.clear();
  }

  /// Checks \p Features, and updates the header if the features' names, types
  /// or shapes have changed. Returns the size of the message in bytes. Returns
  /// an InvalidArgument error if a tensor is invalid, or an Unsupported error
  /// if BareReply cannot express the reply.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out. Returns its size in
  /// bytes. See BaseSerDes::setOutputIsKept() for \p IsKept.
  std::size_t write(Span<const TensorView> Features, std::byte *Out,
                    bool IsKept) const;
  /// Returns the message of the last prepare() in pieces, which the transport
  /// can send without copying. Returns no pieces if the tensors are so small
  /// that copying them is faster.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  template <typename F>
  void forEachInWireOrder(Span<const TensorView> Features, F Do) const;
  void makeHeader(Span<const TensorView> Features);
  void updateHeader(std::byte *Out) const;

  Form Dialect = Form::Native;
  serdes::Schema Last;
  /// The header line with its newline. Empty before the first prepare(), and
  /// always empty for BareReply.
  std::string Header;
  /// The result of pieces().
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H
