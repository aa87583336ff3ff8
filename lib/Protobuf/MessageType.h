//===- MessageType.h - The fields of a user-defined message -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageType: describes a user-defined message for MessageWriter and
/// MessageReader.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H

#include "MLCompilerBridge/Error.h"
#include "Protobuf/Wire.h"

#include <string>
#include <vector>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
} // namespace google::protobuf

namespace MLBridge::protobuf {

/// Immutable; shared by all sessions that use the message.
class MessageType {
public:
  /// The field number of `repeated mlcompilerbridge.Tensor`, which holds the
  /// protocol's own tensors unless the message has fields for them. It is the
  /// largest valid number; other readers skip it.
  static constexpr int ReservedNumber = (1 << 29) - 1;

  struct Field {
    std::string Name;
    int Number;
    Format::FieldType Type;
    bool IsRepeated;
    bool IsPacked;
    /// Declared `optional`: its feature may be missing.
    bool IsOptional;
    bool IsRequired;

    ElementType elementType() const { return elementTypeOf(Type); }
    bool isBytes() const { return Type == Format::TYPE_BYTES; }
    /// The declared type: "repeated float".
    std::string typeStr() const;
  };

  /// Reads the fields of \p Message.
  explicit MessageType(const google::protobuf::Descriptor &Message);

  /// The full name: "my.Features".
  const std::string &name() const { return Name; }
  /// Unsupported if a field cannot hold a tensor.
  const Error &error() const { return FirstError; }
  /// Sorted by number.
  const std::vector<Field> &fields() const { return Fields; }
  /// The index of the field with that name or number, or fields().size().
  std::size_t find(std::string_view FieldName) const;
  std::size_t find(int Number) const;
  /// "a, b, c", for messages.
  std::string fieldNames() const;

private:
  void add(const google::protobuf::FieldDescriptor &Field);

  std::string Name;
  std::vector<Field> Fields;
  Error FirstError;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H
