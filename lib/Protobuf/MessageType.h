//===- MessageType.h - The fields of a user-defined message -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageType: the description of a user-defined message, for MessageWriter
/// and MessageReader.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H

#include "Protobuf/NestedType.h"

#include <string>
#include <vector>

namespace MLBridge::protobuf {

/// This class is immutable. All sessions that use the message share one object.
class MessageType {
public:
  /// The number of a field of type `repeated mlcompilerbridge.Tensor`. The
  /// field contains the protocol's own tensors, for example an error, unless
  /// the message declares fields for them. This is the largest valid field
  /// number. Other readers skip the field.
  static constexpr int ReservedNumber = (1 << 29) - 1;

  using Field = MessageField;

  explicit MessageType(const google::protobuf::Descriptor &Message);

  /// Returns the full name, for example "my.Features".
  const std::string &name() const { return Name; }
  /// Returns an Unsupported error if a field cannot hold a tensor. Otherwise
  /// returns success.
  const Error &error() const { return Nested->error(); }
  /// Returns the fields that are not messages, sorted by number.
  const std::vector<Field> &fields() const { return Fields; }
  /// Returns the fields that are messages.
  const std::shared_ptr<const NestedType> &nested() const { return Nested; }
  /// Returns the index of the field with this name or number. Returns
  /// fields().size() if the message has no such field.
  std::size_t find(std::string_view FieldName) const;
  std::size_t find(int Number) const;
  /// Returns the names of the features that the message can hold, separated by
  /// commas, for error messages.
  std::string fieldNames() const;

private:
  std::string Name;
  std::vector<Field> Fields;
  std::shared_ptr<const NestedType> Nested;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGETYPE_H
