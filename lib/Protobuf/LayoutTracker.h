//===- LayoutTracker.h - Whether views may be reused ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LayoutTracker: what the readers say in BaseSerDes::layout().
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_LAYOUTTRACKER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_LAYOUTTRACKER_H

#include "SerDes/Schema.h"

namespace MLBridge::protobuf {

/// Compares each message's views with the last one's.
class LayoutTracker {
public:
  /// Takes over \p Views, of which some may point into \p Message. Malformed
  /// when they are no message: a name that is empty or there twice.
  Error update(Span<const TensorView> Views, std::string_view Message);
  /// Forgets the last views: the message was none.
  void reset() { Places.clear(); }
  std::uint64_t layout() const { return Layout; }

private:
  /// Where a view's elements are: in the message, whose own address does not
  /// count, or somewhere else.
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
