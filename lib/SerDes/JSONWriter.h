//===- JSONWriter.h - Writes JSON messages ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The writing half of JSONSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H

#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge {

class JSONSerDes::Writer {
public:
  /// Selects whether to write "_types", which foreign peers do not know.
  void setTypes(bool Write) {
    WithTypes = Write;
    Prelude.clear();
  }

  /// Checks \p Features; returns an upper bound on the size of their message,
  /// in bytes. InvalidArgument for invalid tensors.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its size.
  std::size_t write(Span<const TensorView> Features, char *Out) const;

private:
  Error makePrelude(Span<const TensorView> Features);

  bool WithTypes = true;
  serdes::Schema Last;
  /// The beginning of a message up to the first feature; empty if it must be
  /// rebuilt.
  std::string Prelude;
  /// The encoded names of the features, each with the comma before it and the
  /// colon after it.
  std::string Keys;
  /// The end of each name in Keys.
  std::vector<std::size_t> KeyEnds;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H
