//===- GenericWriter.h - Writes tensors to generic messages -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the messages of mlcompilerbridge.proto for ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge::protobuf {

/// The field numbers of mlcompilerbridge.proto.
/// tests/unit/ProtobufSerDesTest.cpp compares them with protoc's.
struct GenericFields {
  // Observation and Advice.
  static constexpr int Tensors = 1;
  static constexpr int Padding = 15;
  // Tensor.
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

  /// Conversions between \p Type and its number in Tensor.Type.
  static int numberOf(ElementType Type) { return static_cast<int>(Type) + 1; }
  static std::optional<ElementType> typeOf(std::uint64_t Number) {
    if (Number < 1 || Number > std::uint64_t(numberOf(ElementType::String)))
      return std::nullopt;
    return static_cast<ElementType>(Number - 1);
  }
};

/// Writes a message as elements between pieces of a skeleton. The skeleton
/// holds the tags, names, types, shapes and lengths, which do not change while
/// the schema stays the same.
class GenericWriter {
public:
  /// Writes tensors as an Observation or Advice, with aligned data.
  GenericWriter() = default;
  /// Writes tensors as elements of the field \p Number of another message.
  explicit GenericWriter(int Number) : Number(Number), IsWhole(false) {}

  /// Checks \p Features, and updates the skeleton if the schema has changed.
  /// Returns the size of their message.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its end.
  std::uint8_t *write(Span<const TensorView> Features, std::uint8_t *Out) const;
  /// The message of the last prepare() in pieces. Empty if pieces are not
  /// worthwhile because they are too small or too many.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  /// Elements and their position in the skeleton.
  struct Insertion {
    std::size_t Before;
    std::size_t Feature;
    std::size_t Offset;
    std::size_t NumBytes;
  };

  void addTensor(Span<const TensorView> Features, std::size_t Index);
  void addStrings(const TensorView &Tensor, std::size_t Index);
  /// Records that elements of \p Feature belong here.
  void insert(std::size_t Feature, std::size_t Offset, std::size_t NumBytes);
  /// Calls \p Put with each part of the message in order.
  template <typename F>
  void forEachPart(Span<const TensorView> Features, F Put) const;

  int Number = GenericFields::Tensors;
  bool IsWhole = true;
  serdes::Schema Last;
  bool IsMade = false;
  std::string Skeleton;
  std::vector<Insertion> Insertions;
  /// The total over all insertions.
  std::size_t NumElementBytes = 0;
  /// The fields of the current tensor up to its elements.
  std::string Body;
  /// Reused by pieces().
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
