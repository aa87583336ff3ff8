//===- NestedReader.h - Reads the messages in a message ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NestedReader: reads the messages in a user-defined message for
/// MessageReader.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDREADER_H

#include "Protobuf/NestedType.h"

#include <memory>
#include <vector>

namespace MLBridge::protobuf {

/// Finds, for each oneof of a message, the member that takes effect. This is
/// the last member on the wire. The fields of the oneof before the position at
/// which this member begins are ignored.
class OneofScan {
public:
  /// Scans \p Message, whose type is \p Type. Scans may be nested: the message
  /// in a message is scanned and ended before its parent's scan ends.
  void begin(std::string_view Message, const NestedType::Node &Type);
  void end();
  /// Ends all scans. Call this before a message, because an error may have left
  /// scans of the last message open.
  void clear() {
    Winners.clear();
    Starts.clear();
  }
  /// Returns true if the field that begins at \p Position takes effect. The
  /// field is a member of the oneof \p Oneof, or of no oneof.
  bool counts(std::size_t Oneof, std::size_t Position) const {
    return Oneof == None || Position >= Winners[Starts.back() + Oneof].Since;
  }

private:
  struct Winner {
    int Number = 0;
    std::size_t Since = 0;
  };
  std::vector<Winner> Winners;
  std::vector<std::size_t> Starts;
};

/// Copies the elements of all columns, because the elements of a column are in
/// many messages.
class NestedReader {
public:
  explicit NestedReader(std::shared_ptr<const NestedType> Type);

  void clear();
  /// Reads a field of the root, which is the message \p Node.
  Error take(const WireField &Wire, std::size_t Node);
  /// Appends the views of all columns to \p Views. Call this after the last
  /// take().
  Error finish(std::vector<TensorView> &Views);
  /// Returns true if the message contains the node.
  bool hasNode(std::size_t Node) const { return NodeStates[Node].IsPresent; }
  void addMemory(std::vector<std::shared_ptr<const void>> &To) const;

  OneofScan &oneofs() { return Oneofs; }

private:
  /// A leaf in the current row.
  struct LeafState {
    std::uint64_t Number = 0;
    std::string_view Text;
    bool IsPresent = false;
    /// The number of a list's elements in all earlier rows.
    std::size_t NumBefore = 0;
  };
  /// A node in the current row.
  struct NodeState {
    bool IsPresent = false;
    /// The number of messages, if the node is repeated.
    std::int64_t Count = 0;
  };

  Error readFields(const NestedType::Node &Node, std::string_view Message);
  Error takeLeaf(const WireField &Wire, std::size_t Index);
  Error endRow(std::size_t Level);
  Error endLeaf(std::size_t Index);
  Error endNode(std::size_t Index);
  void resetRow(std::size_t Level);
  std::size_t numElements(std::size_t Leaf) const;
  bool hasParent(std::size_t Node) const;
  TensorView view(std::size_t Column) const;
  Error checkKeys();
  void addViews(const NestedType::Node &Node, std::vector<TensorView> &Views);

  std::shared_ptr<const NestedType> Type;
  std::vector<serdes::ElementStore> Columns;
  std::vector<LeafState> Leaves;
  std::vector<NodeState> NodeStates;
  /// The number of finished rows of each level.
  std::vector<std::size_t> Rows;
  /// The size of all finished rows in bytes.
  std::size_t NumBytes = 0;
  serdes::ElementStore Scratch;
  OneofScan Oneofs;
  DuplicateKeyFinder DuplicateKeys;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDREADER_H
