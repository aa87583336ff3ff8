//===- JSONWriter.h - Writes JSON messages ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONSerDes::Writer: writes JSON messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H

#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge {

class JSONSerDes::Writer {
public:
  /// Selects whether messages contain "_types". Foreign peers do not support
  /// this key.
  void setTypes(bool Write) {
    WithTypes = Write;
    Prelude.clear();
  }

  /// Checks \p Features. Returns an upper bound on the size of their message,
  /// in bytes. Returns an InvalidArgument error if a tensor is invalid.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out. Returns its size in
  /// bytes.
  std::size_t write(Span<const TensorView> Features, char *Out) const;

private:
  Error makePrelude(Span<const TensorView> Features);

  bool WithTypes = true;
  serdes::Schema Last;
  /// The beginning of a message, up to the first feature. Empty if it must be
  /// built again.
  std::string Prelude;
  /// The encoded names of the features. Each name includes the comma before it
  /// and the colon after it.
  std::string Keys;
  /// The offset in Keys at which each name ends.
  std::vector<std::size_t> KeyEnds;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONWRITER_H
