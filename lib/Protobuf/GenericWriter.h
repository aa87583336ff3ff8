//===- GenericWriter.h - Tensors to a generic message -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The writing half of ProtobufSerDes with the messages of
/// mlcompilerbridge.proto.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "SerDes/Schema.h"

namespace MLBridge::protobuf {

/// The fields of mlcompilerbridge.proto. tests/unit/ProtobufSerDesTest.cpp
/// holds them against protoc's.
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

  /// The number of \p Type in Tensor.Type, and back.
  static int numberOf(ElementType Type) { return static_cast<int>(Type) + 1; }
  static std::optional<ElementType> typeOf(std::uint64_t Number) {
    if (Number < 1 || Number > std::uint64_t(numberOf(ElementType::String)))
      return std::nullopt;
    return static_cast<ElementType>(Number - 1);
  }
};

/// Writes a message as elements between pieces of a skeleton: the tags, names,
/// types, shapes and lengths, which stay the same while the schema does.
class GenericWriter {
public:
  /// Tensors as an Observation or an Advice, with their data aligned.
  GenericWriter() = default;
  /// Tensors as elements of the field \p Number of another message.
  explicit GenericWriter(int Number) : Number(Number), IsWhole(false) {}

  /// Checks \p Features, and makes their skeleton if it is not the last one.
  /// Returns the size of their message.
  Expected<std::size_t> prepare(Span<const TensorView> Features);
  /// Writes the message of the last prepare() to \p Out; returns its end.
  std::uint8_t *write(Span<const TensorView> Features, std::uint8_t *Out) const;
  /// The message of the last prepare() in pieces; none if it is too small or
  /// has too many to be worth it.
  Span<const Span<const std::byte>> pieces(Span<const TensorView> Features);

private:
  /// Elements, and where in the skeleton they belong.
  struct Insertion {
    std::size_t Before;
    std::size_t Feature;
    std::size_t Offset;
    std::size_t NumBytes;
  };

  void addTensor(Span<const TensorView> Features, std::size_t Index);
  void addStrings(const TensorView &Tensor, std::size_t Index);
  /// Notes that elements of \p Feature belong here.
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
  /// Of all insertions.
  std::size_t NumElementBytes = 0;
  /// One tensor's fields up to its elements, while it is added.
  std::string Body;
  /// For pieces(): kept for its memory.
  std::vector<Span<const std::byte>> Pieces;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICWRITER_H
