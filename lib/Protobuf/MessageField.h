//===- MessageField.h - A field of a user-defined message -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageField: a field that holds numbers, bools, enums, strings or bytes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEFIELD_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEFIELD_H

#include "MLCompilerBridge/Error.h"
#include "Protobuf/Wire.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace google::protobuf {
class FieldDescriptor;
} // namespace google::protobuf

namespace MLBridge::protobuf {

/// An index that refers to nothing.
inline constexpr std::size_t None = static_cast<std::size_t>(-1);

struct MessageField {
  /// The names and numbers of an enum's values.
  using EnumValues = std::vector<std::pair<std::string, std::int32_t>>;

  std::string Name;
  int Number = 0;
  Format::FieldType Type = Format::TYPE_INT32;
  bool IsRepeated = false;
  bool IsPacked = false;
  /// True if the field's feature may be missing. This is so if the field is
  /// declared `optional` or is in a oneof, or if its name is reserved for a
  /// tensor that only some messages have, such as `_seed`.
  bool IsOptional = false;
  bool IsRequired = false;
  /// The index of the field's oneof in its message, or None.
  std::size_t Oneof = None;
  /// Null unless the field is an enum.
  std::shared_ptr<const EnumValues> Values;

  /// Creates the description of \p Field, with the name \p Name. \p Field must
  /// not be a message.
  static MessageField of(const google::protobuf::FieldDescriptor &Field,
                         std::string Name);

  ElementType elementType() const { return elementTypeOf(Type); }
  bool isBytes() const { return Type == Format::TYPE_BYTES; }
  bool isText() const { return Type == Format::TYPE_STRING; }
  /// Returns the declared type, for example "repeated float".
  std::string typeStr() const;

  /// Returns true if elements of type \p From can be converted to the field's
  /// type. The conversion may still fail, because of an element's value.
  bool accepts(ElementType From) const;
  /// Converts the elements of \p Feature, whose type the field accepts, to the
  /// field's type, and writes them to \p Out. Returns an empty string, or the
  /// reason why a value cannot be converted.
  std::string convert(const TensorView &Feature, void *Out) const;
};

/// Returns the reason why \p Field cannot hold a feature. Returns an empty
/// string if \p Field can hold a feature or is a message.
std::string obstacleOf(const google::protobuf::FieldDescriptor &Field);

/// Returns an Unsupported error for the field \p Name of the message
/// \p Message.
Error unsupportedField(const std::string &Name, const std::string &Message,
                       const std::string &Why);

/// Returns an error for a field number that is not in the message \p Message.
Error unknownField(int Number, const std::string &Message);

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEFIELD_H
