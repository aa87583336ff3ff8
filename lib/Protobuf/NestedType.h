//===- NestedType.h - The messages in a user-defined message ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NestedType: the description of the messages in a user-defined message, for
/// NestedWriter and NestedReader. Each field of such a message is a column: a
/// tensor with one row for each message.
///
/// For example, a message with `repeated Node nodes = 1`, where Node has
/// `float weight = 1` and `repeated int32 uses = 2`, has these columns:
///   nodes[].weight    the weights of all nodes
///   nodes[].uses      the uses of all nodes, one node after another
///   nodes[].uses[]    the number of uses of each node
/// docs/reference/wire-format.md, section Protobuf, lists all columns.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDTYPE_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDTYPE_H

#include "Protobuf/MessageField.h"

#include <string>
#include <vector>

namespace google::protobuf {
class Descriptor;
} // namespace google::protobuf

namespace MLBridge::protobuf {

/// This class is immutable.
class NestedType {
public:
  /// The maximum nesting depth: the number of messages that enclose a field.
  /// Readers and writers call themselves for each level, so this number bounds
  /// their stack.
  static constexpr std::size_t MaxDepth = 16;
  /// The maximum number of columns. It bounds the memory. If each type has two
  /// fields of the next type, the number of columns doubles with each type.
  static constexpr std::size_t MaxColumns = 4096;

  struct Column {
    enum class Content : std::uint8_t {
      Values,   ///< The elements of a leaf.
      Lengths,  ///< The number of elements or messages in each message.
      Presence, ///< Whether each message has the field.
    };
    std::string Name;
    Content Has;
    /// The level whose messages are the rows of the column.
    std::size_t Level;
    /// The leaf or the node to which the column belongs. The other one is None.
    std::size_t Leaf, Node;
  };

  /// A field that is not a message. The root's own leaves are in
  /// MessageType::fields() instead.
  struct Leaf {
    MessageField Field;
    std::size_t Level;
    /// The node that contains the field.
    std::size_t Node;
    /// The columns of the field, or None.
    std::size_t Values = None, Lengths = None, Presence = None;

    /// True if a message can have any number of elements of the field.
    bool isList() const { return Field.IsRepeated || Field.isBytes(); }
  };

  /// A field of a node.
  struct Entry {
    int Number;
    bool IsMessage;
    /// The index of the leaf, or of the node if IsMessage. None for a leaf of
    /// the root.
    std::size_t Index;
    /// The index of the field's oneof in the node, or None.
    std::size_t Oneof;
  };

  struct Oneof {
    std::string Name;
    std::vector<Entry> Members;
  };

  /// A message, which is a field of its parent. The node 0 is the root.
  struct Node {
    /// The path, such as "graph.nodes[]".
    std::string Path;
    /// The full name of the message's type.
    std::string Type;
    int Number = 0;
    bool IsRepeated = false;
    bool IsOptional = false;
    bool IsRequired = false;
    bool IsMap = false;
    std::size_t Parent = 0;
    /// The level of the node's fields.
    std::size_t Level = 0;
    /// The columns of the node itself, or None.
    std::size_t Count = None, Presence = None;
    /// The fields, sorted by number.
    std::vector<Entry> Fields;
    std::vector<Oneof> Oneofs;
    /// The columns of the node and of the nodes in it.
    std::size_t FirstColumn = 0, EndColumn = 0;

    /// Returns the field with this number, or null.
    const Entry *find(int FieldNumber) const;
  };

  /// A repeated node, and the nodes below it down to the next repeated nodes.
  /// All columns of a level have the same number of rows. Level 0 belongs to
  /// the root and has one row.
  struct Level {
    std::size_t Node = 0;
    std::size_t Parent = 0;
    std::vector<std::size_t> Leaves;
    /// The nodes in a row of this level.
    std::vector<std::size_t> Nodes;
    /// The size of a row in bytes, without the elements of lists and strings.
    std::size_t RowBytes = 0;
  };

  explicit NestedType(const google::protobuf::Descriptor &Message);

  /// Returns an Unsupported error if a field cannot hold a tensor. Otherwise
  /// returns success.
  const Error &error() const { return FirstError; }
  /// Returns true if the root has no fields that are messages.
  bool empty() const { return Nodes.size() == 1; }
  const std::vector<Column> &columns() const { return Columns; }
  const std::vector<Leaf> &leaves() const { return Leaves; }
  const std::vector<Node> &nodes() const { return Nodes; }
  const std::vector<Level> &levels() const { return Levels; }
  const Node &root() const { return Nodes.front(); }
  /// Returns the index of the column called \p Name, or None.
  std::size_t find(std::string_view Name) const;

private:
  struct Builder;

  std::vector<Column> Columns;
  std::vector<Leaf> Leaves;
  std::vector<Node> Nodes;
  std::vector<Level> Levels;
  /// The indexes of the columns, sorted by name.
  std::vector<std::size_t> ByName;
  Error FirstError;
};

/// Finds a key that occurs twice in a map. Reuse one object for many calls, so
/// that it reuses its memory.
class DuplicateKeyFinder {
public:
  /// Returns true if two of the keys in the rows [\p First, \p End) of \p Keys
  /// are equal. The strings of the rows begin at \p Text.
  bool find(const TensorView &Keys, const char *Text, std::size_t First,
            std::size_t End);

private:
  std::vector<std::string_view> Sorted;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_NESTEDTYPE_H
