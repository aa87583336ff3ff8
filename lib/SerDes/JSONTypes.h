//===- JSONTypes.h - The "_types" of a JSON message -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONTypes: the types and shapes that a JSON message declares. A message
/// declares a type or shape that its values do not imply.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H

#include "SerDes/JSONParser.h"
#include "SerDes/Schema.h"

namespace MLBridge::serdes {

/// Maps the names of features to their declared types. The object can read many
/// messages. It allocates memory only if a message declares more types than all
/// earlier messages.
class JSONTypes {
public:
  struct Entry {
    std::string Name;
    ElementType Type = ElementType::UInt8;
    /// The declared shape. Empty if the declaration has no shape.
    std::optional<Shape> Dims;
    bool IsUsed = false;
  };

  void clear() { Count = 0; }
  /// Reads declarations, for example
  /// `{"x":"float","y":{"type":"int8_t","shape":[0,3]}}`.
  Error read(ondemand::value Value);

  /// Starts a new series of lookUp() calls.
  void startLookups();
  /// Returns the declaration of \p Name, or null if there is none. Lookups in
  /// the order of declaration are the fastest.
  const Entry *lookUp(std::string_view Name);
  /// Returns a Malformed error if a declared type has not been looked up since
  /// startLookups().
  Error checkAllUsed() const;

private:
  Error readEntry(ondemand::value Value, Entry &Out);

  /// The first Count elements are the message's declarations. The remaining
  /// elements are kept only so that their memory can be reused.
  std::vector<Entry> Entries;
  std::size_t Count = 0;
  /// The number of entries at the beginning whose names are known to be
  /// distinct.
  std::size_t NumDistinct = 0;
  /// The index of the entry that the next lookUp() will probably need.
  std::size_t Next = 0;
  /// The indices of the entries, sorted by name. The list is built when it is
  /// first needed.
  std::vector<std::size_t> ByName;
  DuplicateFinder Duplicates;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONTYPES_H
