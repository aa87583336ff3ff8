//===- Wire.h - Fields of a Protobuf message --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that encode and decode Protobuf fields with libprotobuf's coded
/// streams. They read and write messages in place rather than through message
/// objects. This avoids a copy of each tensor, and it avoids all allocations.
/// It also keeps untrusted bytes away from a parser that prints errors.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H

#include "MLCompilerBridge/Tensor.h"
#include "SerDes/ElementStore.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace MLBridge::protobuf {

using Format = google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

/// Protobuf's own limit on the size of a message, in bytes. Protobuf stores
/// lengths as int.
inline constexpr std::size_t MaxMessage = std::numeric_limits<int>::max();

struct WireField {
  int Number = 0;
  Format::WireType Type = Format::WIRETYPE_VARINT;
  /// The value, if the field is a varint or a fixed-width number.
  std::uint64_t Bits = 0;
  /// The contents, if the field has a length.
  std::string_view Bytes;

  bool hasBytes() const { return Type == Format::WIRETYPE_LENGTH_DELIMITED; }
};

/// Iterates over the fields of a message. It never reads beyond the end of the
/// message.
class FieldReader {
public:
  /// Creates a reader of \p Message, which must not exceed MaxMessage bytes.
  explicit FieldReader(std::string_view Message)
      : Message(Message),
        Input(reinterpret_cast<const std::uint8_t *>(Message.data()),
              static_cast<int>(Message.size())) {}

  enum class Step { Field, End, Broken };
  /// Reads the next field. Skips groups.
  Step next(WireField &Field);
  /// Returns the reader's position in the message, in bytes.
  std::size_t position() const {
    return static_cast<std::size_t>(Input.CurrentPosition());
  }
  /// Describes the error after next() has returned Broken.
  std::string problem() const;

private:
  std::string_view Message;
  CodedInputStream Input;
};

/// Returns the element type for a field of \p Type. For bytes, the element type
/// is UInt8.
ElementType elementTypeOf(Format::FieldType Type);

/// Appends the elements in \p Field to \p Out. The field contains one element
/// or packed elements. \p Type must be numeric. Returns false if the elements
/// are invalid or are encoded for another type.
bool readNumbers(const WireField &Field, Format::FieldType Type,
                 serdes::ElementStore &Out);

/// Returns the size in bytes of \p Count encoded elements, without their tag
/// and length. The elements are at \p Elements and have the type
/// elementTypeOf(\p Type).
std::size_t numbersSize(Format::FieldType Type, const void *Elements,
                        std::size_t Count);
/// Writes the \p Count elements at \p Elements to \p Out. Returns the end of
/// the written bytes.
std::uint8_t *writeNumbers(Format::FieldType Type, const void *Elements,
                           std::size_t Count, std::uint8_t *Out);

/// Returns the size of a length in bytes.
inline std::size_t lengthSize(std::size_t Length) {
  return CodedOutputStream::VarintSize64(Length);
}

/// Writes the tag of the field \p Number to \p Out. Returns the end of the
/// written bytes.
inline std::uint8_t *writeTag(int Number, Format::WireType Type,
                              std::uint8_t *Out) {
  return CodedOutputStream::WriteTagToArray(Format::MakeTag(Number, Type), Out);
}

/// Writes the tag of the field \p Number, and the length of the \p NumBytes
/// bytes that follow, to \p Out. Returns the end of the written bytes.
inline std::uint8_t *writeLength(int Number, std::size_t NumBytes,
                                 std::uint8_t *Out) {
  Out = writeTag(Number, Format::WIRETYPE_LENGTH_DELIMITED, Out);
  return CodedOutputStream::WriteVarint64ToArray(NumBytes, Out);
}

/// Writes a field that has a length. Returns the end of the written bytes.
inline std::uint8_t *writeBytes(int Number, const void *Bytes,
                                std::size_t NumBytes, std::uint8_t *Out) {
  Out = writeLength(Number, NumBytes, Out);
  if (NumBytes != 0)
    std::memcpy(Out, Bytes, NumBytes);
  return Out + NumBytes;
}

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_WIRE_H
