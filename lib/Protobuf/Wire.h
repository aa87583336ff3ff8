//===- Wire.h - Fields of a Protobuf message --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Protobuf's encoding, field by field, over the library's own coded streams.
/// Messages are read and written in place rather than through message objects:
/// that saves a copy of each tensor and all allocations, and keeps bytes from
/// other processes away from a parser that prints what it does not like.
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

/// Protobuf's own limit; its lengths are ints.
inline constexpr std::size_t MaxMessage = std::numeric_limits<int>::max();

/// A field as it is on the wire.
struct WireField {
  int Number = 0;
  Format::WireType Type = Format::WIRETYPE_VARINT;
  /// Of a varint or a fixed number.
  std::uint64_t Bits = 0;
  /// Of what has a length.
  std::string_view Bytes;

  bool hasBytes() const { return Type == Format::WIRETYPE_LENGTH_DELIMITED; }
};

/// Takes a message apart. Whatever the bytes are, it ends within them.
class FieldReader {
public:
  /// At most MaxMessage bytes.
  explicit FieldReader(std::string_view Message)
      : Message(Message),
        Input(reinterpret_cast<const std::uint8_t *>(Message.data()),
              static_cast<int>(Message.size())) {}

  enum class Step { Field, End, Broken };
  /// The next field that is no group; groups are skipped.
  Step next(WireField &Field);
  /// Where in the message the reader is.
  std::size_t position() const {
    return static_cast<std::size_t>(Input.CurrentPosition());
  }

private:
  std::string_view Message;
  CodedInputStream Input;
};

/// The element type that a field of \p Type holds. Bytes are UInt8.
ElementType elementTypeOf(Format::FieldType Type);

/// Appends the elements in \p Field, one or packed, of a field of number type
/// \p Type. False where they are broken, or encoded for another type.
bool readNumbers(const WireField &Field, Format::FieldType Type,
                 serdes::ElementStore &Out);

/// The bytes of \p Count elements at \p Elements, which are of
/// elementTypeOf(\p Type), without tag or length.
std::size_t numbersSize(Format::FieldType Type, const void *Elements,
                        std::size_t Count);
/// Writes them; returns the end.
std::uint8_t *writeNumbers(Format::FieldType Type, const void *Elements,
                           std::size_t Count, std::uint8_t *Out);

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H
