//===- JSONTypes.h - The "_types" of a JSON message -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONTypes: what a JSON message says of the types and shapes that its values
/// do not tell.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// The declared types by feature. Reading again allocates only where there are
/// more than ever before.
class JSONTypes {
public:
  struct Entry {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    /// Only where the declaration has one.
    std::optional<Shape> Dims;
    bool IsUsed = false;
  };

  /// Forgets all types.
  void clear() { Count = 0; }
  /// Reads `{"x":"float","y":{"type":"int8_t","shape":[0,3]}}`.
  Error read(ondemand::value Value);

  /// Starts looking for features anew.
  void startLookups();
  /// The type of \p Name, or null. Fastest when features are asked for in the
  /// order in which they were declared.
  const Entry *lookUp(std::string_view Name);
  /// An error if a type was declared that nobody has looked up since
  /// startLookups().
  Error checkAllUsed() const;

private:
  Error readEntry(ondemand::value Value, Entry &Out);

  /// Entries behind the first Count are of older messages, kept for their
  /// memory.
  std::vector<Entry> Entries;
  std::size_t Count = 0;
  /// The names of this many entries have been compared with each other.
  std::size_t NumDistinct = 0;
  /// The entry that is expected to be asked for next.
  std::size_t Next = 0;
  /// The indices of the entries by name; empty until it is needed.
  std::vector<std::size_t> ByName;
  DuplicateFinder Duplicates;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
