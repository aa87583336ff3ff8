//===- MessageType.h - A message of the user's, field by field --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageType: what MessageWriter and MessageReader know of a message of the
/// user's own .proto.
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
  /// The tensors whose names are the protocol's own, and which the message has
  /// no field for, are `repeated mlcompilerbridge.Tensor` in the field of this
  /// number, the last that there is. Who does not know it skips it.
  static constexpr int ReservedNumber = (1 << 29) - 1;

  struct Field {
    std::string Name;
    int Number;
    Format::FieldType Type;
    bool IsRepeated;
    bool IsPacked;
    /// Declared `optional`: there may be no feature for it.
    bool IsOptional;
    bool IsRequired;

    ElementType elementType() const { return elementTypeOf(Type); }
    bool isBytes() const { return Type == Format::TYPE_BYTES; }
    /// As it is declared: "repeated float".
    std::string typeStr() const;
  };

  /// Takes what it needs of \p Message.
  explicit MessageType(const google::protobuf::Descriptor &Message);

  /// With its package: "my.Features".
  const std::string &name() const { return Name; }
  /// Unsupported when a field is of a kind that no tensor has.
  const Error &error() const { return FirstError; }
  /// By rising numbers.
  const std::vector<Field> &fields() const { return Fields; }
  /// The index of the field of that name or number, or fields().size().
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
