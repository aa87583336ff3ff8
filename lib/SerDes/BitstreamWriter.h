//===- BitstreamWriter.h - Writes bitstream messages ------------*- C++ -*-===//
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
  /// The dialects of the format.
  enum class Form {
    /// A padded header, then the tensors by decreasing element size, so that
    /// each
    /// is aligned.
    Native,
    /// For foreign models: tensors in the order of population, scalars as lists
    /// of one element, no padding.
    BareRequest,
    /// For foreign compilers: only the bytes of one tensor.
    BareReply,
  };

  void setForm(Form NewForm) {
    Dialect = NewForm;
    Header.clear();
  }

  /// Checks \p Features and updates the header if their schema has changed.
  /// Returns the size of their message. InvalidArgument for invalid tensors;
  /// Unsupported for a reply that BareReply cannot express.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its size.
  /// \p IsKept: see BaseSerDes::setOutputIsKept().
  std::size_t write(Span<const TensorView> Features, std::byte *Out,
                    bool IsKept) const;
  /// The message of the last prepare() in pieces; empty if the tensors are too
  /// small on average for gathering to pay.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  template <typename F>
  void forEachInWireOrder(Span<const TensorView> Features, F Do) const;
  void makeHeader(Span<const TensorView> Features);
  void updateHeader(std::byte *Out) const;

  Form Dialect = Form::Native;
  serdes::Schema Last;
  /// The header line with its newline; empty before the first prepare() and for
  /// BareReply.
  std::string Header;
  /// The result of pieces().
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_BITSTREAMWRITER_H
