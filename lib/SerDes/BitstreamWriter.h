//===- BitstreamWriter.h - Tensors to a bitstream message -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The writing half of BitstreamSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge {

class BitstreamSerDes::Writer {
public:
  /// Which of the format's dialects to write.
  enum class Form {
    /// Aligned: tensors by falling element size, behind a padded header.
    Native,
    /// What foreign models read: tensors as populated, a scalar as one element
    /// of a list, no padding.
    BareRequest,
    /// What foreign compilers read: one tensor's bytes and nothing else.
    BareReply,
  };

  void setForm(Form NewForm) {
    Dialect = NewForm;
    Header.clear();
  }

  /// Checks \p Features, and makes their header if it is not the last one.
  /// Returns the size of their message.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its size.
  /// \p IsKept: BaseSerDes::setOutputIsKept().
  std::size_t write(Span<const TensorView> Features, std::byte *Out,
                    bool IsKept) const;
  /// The message of the last prepare() in pieces; none if it is too small or
  /// has too many to be worth it.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  template <typename F>
  void forEachInWireOrder(Span<const TensorView> Features, F Do) const;
  void makeHeader(Span<const TensorView> Features);
  void updateHeader(std::byte *Out) const;

  Form Dialect = Form::Native;
  serdes::Schema Last;
  /// The header line with its newline; empty when there is none yet, and in a
  /// BareReply.
  std::string Header;
  /// For pieces(): kept for its memory.
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H
