//===- JSONTypes.h - The "_types" of a JSON message -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONTypes: the types and shapes that a JSON message declares because its
/// values do not imply them.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// The declared types by feature. Reading another message allocates only if it
/// declares more types than all earlier messages.
class JSONTypes {
public:
  struct Entry {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    /// Set only if the declaration has a shape.
    std::optional<Shape> Dims;
    bool IsUsed = false;
  };

  /// Removes all types.
  void clear() { Count = 0; }
  /// Reads `{"x":"float","y":{"type":"int8_t","shape":[0,3]}}`.
  Error read(ondemand::value Value);

  /// Starts a new series of lookUp() calls.
  void startLookups();
  /// The type of \p Name, or null. Fastest in the order of declaration.
  const Entry *lookUp(std::string_view Name);
  /// Malformed if a declared type has not been looked up since startLookups().
  Error checkAllUsed() const;

private:
  Error readEntry(ondemand::value Value, Entry &Out);

  /// Entries after the first Count belong to older messages; they keep their
  /// memory for reuse.
  std::vector<Entry> Entries;
  std::size_t Count = 0;
  /// The names of the first NumDistinct entries are known to be distinct.
  std::size_t NumDistinct = 0;
  /// The entry that the next lookUp() probably wants.
  std::size_t Next = 0;
  /// The indices of the entries, sorted by name; built on demand.
  std::vector<std::size_t> ByName;
  DuplicateFinder Duplicates;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
