//===- NestedWriter.h - Writes the messages in a message --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NestedWriter: writes the messages in a user-defined message for
/// MessageWriter.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDWRITER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDWRITER_H

#include "Protobuf/NestedType.h"

#include <memory>
#include <vector>

namespace MLBridge::protobuf {

class NestedWriter {
public:
  explicit NestedWriter(std::shared_ptr<const NestedType> Type);

  /// Forgets the features of the last message.
  void clear();
  /// Adds \p Feature, which is the feature \p Index of the message, to the
  /// column with the feature's name. Returns false if there is no such column,
  /// or a SchemaMismatch error if the feature does not fit.
  Expected<bool> add(const TensorView &Feature, std::size_t Index);

  /// Checks the values of the added features, which are in \p Features. Returns
  /// the size of the encoded messages in bytes.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the messages of the last prepare() to \p Out. Returns the end of
  /// the written bytes.
  std::uint8_t *write(std::uint8_t *Out);

  /// Returns true if the root contains the message \p Node, which is a field of
  /// the root. Call prepare() first.
  bool hasNode(std::size_t Node) const { return isPresent(Node, 0); }

private:
  using Column = NestedType::Column;
  /// The feature of a column.
  struct Given {
    std::size_t Index = None;
    TensorView Feature;
    /// The offset of the converted elements in Converted. Valid only if the
    /// elements were converted.
    std::size_t Offset = 0;
    bool IsConverted = false;
  };
  /// A half-open range of elements.
  struct Range {
    std::size_t First, End;
    std::size_t size() const { return End - First; }
  };

  bool has(std::size_t Index) const {
    return Index != None && Columns[Index].Index != None;
  }
  const std::byte *elements(std::size_t Index) const;
  bool isTrue(std::size_t Index, std::size_t Row) const;
  bool isTrueAnywhere(std::size_t Index) const;
  std::int64_t length(std::size_t Index, std::size_t Row) const;

  Error checkForm(const Column &Column, const TensorView &Feature) const;
  Error mismatch(const Column &Column, const std::string &Wanted,
                 const std::string &Found) const;
  Error convertAll();
  bool isUsed(const NestedType::Node &Node) const;
  Error checkFields(const NestedType::Node &Node) const;
  Error checkLeaf(const NestedType::Leaf &Leaf) const;
  std::size_t numRows(std::size_t Index) const;
  Error countRows(std::size_t Level);
  Error sumLengths(std::size_t Index, std::vector<std::size_t> &Offsets) const;
  Error placeLists();
  Error checkOneofs() const;
  Error checkKeys();

  bool isPresent(std::size_t Node, std::size_t Row) const;
  bool hasLeaf(const NestedType::Leaf &Leaf, std::size_t Row) const;
  Range elementsOf(std::size_t Leaf, std::size_t Row) const;
  std::size_t sizeOfFields(const NestedType::Node &Node, std::size_t Row);
  std::size_t sizeOfLeaf(std::size_t Index, std::size_t Row);
  std::uint8_t *writeFields(const NestedType::Node &Node, std::size_t Row,
                            std::uint8_t *Out);
  std::uint8_t *writeLeaf(std::size_t Index, std::size_t Row,
                          std::uint8_t *Out);

  std::shared_ptr<const NestedType> Type;
  std::vector<Given> Columns;
  serdes::ElementStore Converted;
  /// For each node, 1 if a feature is in the node, otherwise 0.
  std::vector<std::uint8_t> Used;
  /// The number of rows of each level.
  std::vector<std::size_t> Rows;
  /// For each level, the first row that belongs to each row of the parent
  /// level, and at the end the number of rows.
  std::vector<std::vector<std::size_t>> FirstRows;
  /// For each leaf that is a list with lengths, the index of each row's first
  /// element, and at the end the number of elements.
  std::vector<std::vector<std::size_t>> FirstElements;
  /// For each leaf that holds strings, the position of each string.
  std::vector<std::vector<std::size_t>> Texts;
  /// The sizes of the messages and of the packed fields, in the order in which
  /// they are written.
  std::vector<std::size_t> Sizes;
  std::size_t NextSize = 0;
  DuplicateKeyFinder DuplicateKeys;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDWRITER_H
