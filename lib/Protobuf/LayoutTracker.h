//===- LayoutTracker.h - Detects whether views can be reused ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LayoutTracker: computes BaseSerDes::layout() for the readers of Protobuf
/// messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_LAYOUTTRACKER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_LAYOUTTRACKER_H

#include "SerDes/Schema.h"

namespace MLBridge::protobuf {

/// Compares the views of a message with the views of the previous message.
class LayoutTracker {
public:
  /// Records \p Views, some of which may point into \p Message. Returns a
  /// Malformed error if a name is empty or occurs twice.
  Error update(Span<const TensorView> Views, std::string_view Message);
  /// Discards the last views. Call this after an invalid message.
  void reset() { Places.clear(); }
  std::uint64_t layout() const { return Layout; }

private:
  /// The position of a view's elements. The position is an offset if the
  /// elements are in the message. Otherwise, it is an address.
  struct Place {
    bool IsInMessage;
    std::uintptr_t Where;
    const std::uint64_t *Lengths;
    friend bool operator==(const Place &, const Place &) = default;
  };

  serdes::Schema Last;
  std::vector<Place> Places;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_LAYOUTTRACKER_H
