//===- Wire.h - Fields of a Protobuf message --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Encodes and decodes Protobuf fields with the library's coded streams.
/// Messages are read and written in place rather than through message objects.
/// This avoids a copy of each tensor and all allocations, and keeps untrusted
/// bytes away from a parser that prints errors.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H

#include "MLCompilerBridge/Tensor.h"
#include "SerDes/ElementStore.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <string_view>

namespace MLBridge::protobuf {

using Format = google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

/// Protobuf's own limit: lengths are ints.
inline constexpr std::size_t MaxMessage = std::numeric_limits<int>::max();

/// An encoded field.
struct WireField {
  int Number = 0;
  Format::WireType Type = Format::WIRETYPE_VARINT;
  /// The value of a varint or a fixed-width number.
  std::uint64_t Bits = 0;
  /// The contents of a field with a length.
  std::string_view Bytes;

  bool hasBytes() const { return Type == Format::WIRETYPE_LENGTH_DELIMITED; }
};

/// Iterates over the fields of a message; never reads beyond its bytes.
class FieldReader {
public:
  /// \p Bytes has at most MaxMessage bytes.
  explicit FieldReader(std::string_view Message)
      : Message(Message),
        Input(reinterpret_cast<const std::uint8_t *>(Message.data()),
              static_cast<int>(Message.size())) {}

  enum class Step { Field, End, Broken };
  /// Reads the next field; groups are skipped.
  Step next(WireField &Field);
  /// The reader's position in the message.
  std::size_t position() const {
    return static_cast<std::size_t>(Input.CurrentPosition());
  }

private:
  std::string_view Message;
  CodedInputStream Input;
};

/// The element type for a field of \p Type. Bytes are UInt8.
ElementType elementTypeOf(Format::FieldType Type);

/// Appends the elements in \p Field, one or packed, whose type is the numeric
/// \p Type. False if they are invalid or encoded for another type.
bool readNumbers(const WireField &Field, Format::FieldType Type,
                 serdes::ElementStore &Out);

/// The size of \p Count encoded elements at \p Elements, which have the type
/// elementTypeOf(\p Type), without tag or length.
std::size_t numbersSize(Format::FieldType Type, const void *Elements,
                        std::size_t Count);
/// Writes the elements and returns the end.
std::uint8_t *writeNumbers(Format::FieldType Type, const void *Elements,
                           std::size_t Count, std::uint8_t *Out);

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H
