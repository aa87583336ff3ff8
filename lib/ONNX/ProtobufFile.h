//===- ProtobufFile.h - Reads Protobuf messages in files --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Fields: iterates over the fields of a Protobuf message in a file. Fields
/// that are skipped, for example weights, are not read. If a message is
/// invalid, the iteration ends early and has no other effect.
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

/// The range of bytes that a message or a string occupies in the file.
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

  /// Appends the bytes of \p From to \p Text. Returns false if the file is too
  /// short.
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

/// Iterates over a message's fields. Ends early if the message is invalid.
class Fields {
public:
  Fields(Window &File, Range In) : File(File), At(In.Begin), End(In.End) {}

  /// Moves to the next field that is a varint or has bytes. Returns false at
  /// the end of the message.
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
        return setContent({At, At});
      case 1:
        At += 8;
        continue;
      case 2: {
        std::uint64_t Length;
        if (!readVarint(Length) || Length > End - At)
          return false;
        return setContent({At, At + Length});
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

  /// Returns true if the field has the number \p Wanted and contains bytes,
  /// which are a message or a string. The function also checks the kind, so
  /// that callers skip a field with the right number but the wrong kind.
  bool isBytes(std::uint64_t Wanted) const {
    return Number == Wanted && !HasNumber;
  }
  bool isVarint(std::uint64_t Wanted) const {
    return Number == Wanted && HasNumber;
  }
  /// Returns the range of the field's bytes. The range is empty for a varint.
  Range content() const { return Content; }
  /// Returns the range of the whole field, including its number and length.
  Range whole() const { return Whole; }
  /// Returns the value of a varint.
  std::int64_t value() const { return static_cast<std::int64_t>(Value); }
  bool atEnd() const { return At == End; }
  std::string text() const {
    // The limit on the length of a text. Paths and names are shorter.
    constexpr std::uint64_t Most = 1 << 16;
    std::string Text;
    for (std::uint64_t I = Content.Begin; I < Content.End && Text.size() < Most;
         ++I)
      Text += static_cast<char>(File.at(I).value_or(0));
    return Text;
  }

private:
  bool setContent(Range Found) {
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
