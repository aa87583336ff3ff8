//===- MessageWriter.h - Writes user-defined messages -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageWriter: writes user-defined messages for ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEWRITER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEWRITER_H

#include "Protobuf/GenericWriter.h"
#include "Protobuf/MessageType.h"
#include "Protobuf/NestedWriter.h"

#include <memory>

namespace MLBridge::protobuf {

class MessageWriter {
public:
  explicit MessageWriter(std::shared_ptr<const MessageType> Type)
      : Type(std::move(Type)), Nested(this->Type->nested()) {}

  /// Checks \p Features against the message's fields. Converts a feature if its
  /// type differs from the field's type, for example int32_t and int64_t, or a
  /// string and an enum.
  /// Returns the size of the message in bytes.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out. Returns the end of the
  /// message.
  std::uint8_t *write(Span<const TensorView> Features, std::uint8_t *Out);

private:
  /// The index of a field and the index of its feature.
  struct Pair {
    std::size_t Field;
    std::size_t Feature;
    /// The offset of the converted elements in the store. Valid only if the
    /// elements were converted to the field's type.
    std::size_t Offset = 0;
    bool IsConverted = false;
    /// The size in bytes of a packed or single value, without its tag and
    /// length.
    std::size_t Size = 0;
  };

  Error pair(Span<const TensorView> Features);
  Error checkComplete(Span<const TensorView> Features) const;
  Error checkOneofs() const;
  std::uint8_t *writePair(const Pair &P, Span<const TensorView> Features,
                          std::uint8_t *Out) const;
  Error convert(const TensorView &Feature, Pair &P);
  Error mismatch(const MessageType::Field &Field, const TensorView &Feature,
                 const std::string &Found) const;
  const void *elementsOf(const Pair &P, Span<const TensorView> Features) const;
  std::size_t sizeOf(const MessageType::Field &Field, const TensorView &Feature,
                     Pair &P, Span<const TensorView> Features) const;

  std::shared_ptr<const MessageType> Type;
  serdes::Schema Last;
  bool IsPaired = false;
  /// True if the message has fields. A message that consists of the protocol's
  /// own tensors, for example an error, has no fields.
  bool HasFields = true;
  std::vector<Pair> Pairs;
  NestedWriter Nested;
  serdes::ElementStore Converted;
  /// The features with the protocol's own names, which begin with an
  /// underscore.
  std::vector<TensorView> Reserved;
  std::vector<std::size_t> ReservedFeatures;
  GenericWriter ReservedWriter{MessageType::ReservedNumber};
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEWRITER_H
