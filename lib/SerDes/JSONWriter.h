//===- JSONWriter.h - Tensors to a JSON object ------------------*- C++ -*-===//
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
  /// Foreign peers know nothing of "_types".
  void setTypes(bool Write) {
    WithTypes = Write;
    Prelude.clear();
  }

  /// Checks \p Features; returns an upper bound of the size of their message.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its size.
  std::size_t write(Span<const TensorView> Features, char *Out) const;

private:
  Error makePrelude(Span<const TensorView> Features);

  bool WithTypes = true;
  serdes::Schema Last;
  /// What a message begins with, up to the first feature; empty when it has to
  /// be made.
  std::string Prelude;
  /// Each feature's name as the message has it, with its colon and with the
  /// comma before it.
  std::string Keys;
  /// Where in Keys each one ends.
  std::vector<std::size_t> KeyEnds;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H
