//===- GenericWriter.h - Writes tensors to generic messages -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GenericWriter: writes the messages of mlcompilerbridge.proto for
/// ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge::protobuf {

/// The field numbers of mlcompilerbridge.proto.
/// tests/unit/ProtobufSerDesTest.cpp checks that protoc's code has the same
/// numbers.
struct GenericFields {
  // The fields of Observation and Advice.
  static constexpr int Tensors = 1;
  static constexpr int Padding = 15;
  // The fields of Tensor.
  static constexpr int Name = 1;
  static constexpr int Type = 2;
  static constexpr int Shape = 3;
  static constexpr int Data = 4;
  static constexpr int Strings = 5;
  static constexpr int Ints = 6;
  static constexpr int UInts = 7;
  static constexpr int Floats = 8;
  static constexpr int Doubles = 9;
  static constexpr int Bools = 10;

  /// Functions that convert between an element type and its number in
  /// Tensor.Type.
  static int numberOf(ElementType Type) { return static_cast<int>(Type) + 1; }
  static std::optional<ElementType> typeOf(std::uint64_t Number) {
    if (Number < 1 || Number > std::uint64_t(numberOf(ElementType::String)))
      return std::nullopt;
    return static_cast<ElementType>(Number - 1);
  }
};

/// Writes messages. A message is a skeleton into which the tensors' elements
/// are inserted. The skeleton contains the tags, names, types, shapes and
/// lengths. It does not change while the schema stays the same.
class GenericWriter {
public:
  /// Creates a writer of an Observation or an Advice, with aligned data.
  GenericWriter() = default;
  /// Creates a writer of tensors that are elements of the field \p Number of
  /// another message.
  explicit GenericWriter(int Number) : Number(Number), IsWhole(false) {}

  /// Checks \p Features, and updates the skeleton if the schema has changed.
  /// Returns the size of the message in bytes.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out. Returns the end of the
  /// message.
  std::uint8_t *write(Span<const TensorView> Features, std::uint8_t *Out) const;
  /// Returns the message of the last prepare() in pieces, which the transport
  /// can send without copying. Returns no pieces if copying is faster, because
  /// the pieces would be too small or too many.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  /// A part of a tensor's elements, and the position in the skeleton where they
  /// belong.
  struct Insertion {
    std::size_t Before;
    std::size_t Feature;
    std::size_t Offset;
    std::size_t NumBytes;
  };

  void addTensor(Span<const TensorView> Features, std::size_t Index);
  void addStrings(const TensorView &Tensor, std::size_t Index);
  /// Records that elements of the feature with the index \p Feature belong at
  /// the current end of the skeleton.
  void insert(std::size_t Feature, std::size_t Offset, std::size_t NumBytes);
  /// Calls \p Put with each part of the message, in order.
  template <typename F>
  void forEachPart(Span<const TensorView> Features, F Put) const;

  int Number = GenericFields::Tensors;
  bool IsWhole = true;
  serdes::Schema Last;
  bool IsMade = false;
  std::string Skeleton;
  std::vector<Insertion> Insertions;
  /// The total number of bytes in all insertions.
  std::size_t NumElementBytes = 0;
  /// The encoded fields of the current tensor that precede its elements.
  std::string Body;
  /// The result of pieces(). It is a member so that its memory is reused.
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
