//===- ProtobufFile.h - Reads Protobuf messages in files --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Fields: iterates over a Protobuf message in a file, by field number. Skipped
/// fields, such as weights, are not read. Invalid messages end the iteration
/// early and do no harm.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_PROTOBUFFILE_H
#define MLBRIDGE_LIB_ONNX_PROTOBUFFILE_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unistd.h>

namespace MLBridge::onnx {

/// The bytes of a message or a string in the file.
struct Range {
  std::uint64_t Begin = 0;
  std::uint64_t End = 0;
};

/// Reads a file through a small buffer.
class Window {
public:
  explicit Window(int FD) : FD(FD) {}

  std::optional<std::uint8_t> at(std::uint64_t Offset) {
    if (Offset - Start >= Length) {
      Start = Offset;
      Length = read(Offset, Bytes.data(), Bytes.size());
      if (Length == 0)
        return std::nullopt;
    }
    return Bytes[Offset - Start];
  }

  /// Appends the bytes of \p From to \p Text; false if the file is too short.
  bool copy(Range From, std::string &Text) const {
    std::size_t At = Text.size();
    Text.resize(At + (From.End - From.Begin));
    while (From.Begin < From.End) {
      const std::size_t Read =
          read(From.Begin, &Text[At], From.End - From.Begin);
      if (Read == 0)
        return false;
      From.Begin += Read;
      At += Read;
    }
    return true;
  }

private:
  std::size_t read(std::uint64_t Offset, void *To, std::size_t Most) const {
    const ssize_t Read = ::pread(FD, To, Most, static_cast<off_t>(Offset));
    return Read > 0 ? static_cast<std::size_t>(Read) : 0;
  }

  int FD;
  std::uint64_t Start = 0;
  std::size_t Length = 0;
  std::array<std::uint8_t, 4096> Bytes;
};

/// Iterates over the fields of one message; ends early if it is invalid.
class Fields {
public:
  Fields(Window &File, Range In) : File(File), At(In.Begin), End(In.End) {}

  /// Moves to the next field that is a varint or has bytes.
  bool next() {
    while (At < End) {
      Whole.Begin = At;
      std::uint64_t Tag;
      if (!readVarint(Tag))
        return false;
      Number = Tag >> 3;
      HasNumber = (Tag & 7) == 0;
      switch (Tag & 7) {
      case 0:
        if (!readVarint(Value))
          return false;
        return adopt({At, At});
      case 1:
        At += 8;
        continue;
      case 2: {
        std::uint64_t Length;
        if (!readVarint(Length) || Length > End - At)
          return false;
        return adopt({At, At + Length});
      }
      case 5:
        At += 4;
        continue;
      default:
        return false;
      }
    }
    return false;
  }

  /// True for the field number \p Wanted with bytes: a message or string. A
  /// field of another kind than its number implies is ignored.
  bool isBytes(std::uint64_t Wanted) const {
    return Number == Wanted && !HasNumber;
  }
  bool isVarint(std::uint64_t Wanted) const {
    return Number == Wanted && HasNumber;
  }
  /// The bytes of the field; empty for a varint.
  Range content() const { return Content; }
  /// The whole field, including its number and length.
  Range whole() const { return Whole; }
  /// The value of a varint.
  std::int64_t value() const { return static_cast<std::int64_t>(Value); }
  /// True if the whole message has been read.
  bool atEnd() const { return At == End; }
  std::string text() const {
    // Longer than any path or name.
    constexpr std::uint64_t Most = 1 << 16;
    std::string Text;
    for (std::uint64_t I = Content.Begin; I < Content.End && Text.size() < Most;
         ++I)
      Text += static_cast<char>(File.at(I).value_or(0));
    return Text;
  }

private:
  bool adopt(Range Found) {
    Content = Found;
    At = Whole.End = Found.End;
    return true;
  }

  bool readVarint(std::uint64_t &Read) {
    Read = 0;
    for (unsigned Shift = 0; Shift < 64 && At < End; Shift += 7) {
      std::optional<std::uint8_t> Byte = File.at(At++);
      if (!Byte)
        return false;
      Read |= std::uint64_t(*Byte & 127) << Shift;
      if (*Byte < 128)
        return true;
    }
    return false;
  }

  Window &File;
  std::uint64_t At;
  std::uint64_t End;
  std::uint64_t Number = 0;
  std::uint64_t Value = 0;
  bool HasNumber = false;
  Range Content, Whole;
};

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_PROTOBUFFILE_H
