//===- ProtobufFile.h - The fields of a file's messages ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Fields: goes through a message of Protobuf's that lies in a file, by the
/// numbers of its fields. Of what is passed over, weights above all, not a byte
/// is read. Reading what is no message ends early, and does no harm.
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

/// A message, or a string: some bytes of the file.
struct Range {
  std::uint64_t Begin = 0;
  std::uint64_t End = 0;
};

/// The bytes of a file, a window at a time.
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

  /// Adds the bytes of \p From to \p Text; false where the file has fewer.
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

/// Goes through the fields of one message; ends early where it is none.
class Fields {
public:
  Fields(Window &File, Range In) : File(File), At(In.Begin), End(In.End) {}

  /// Moves to the next field that has bytes or is a varint.
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

  /// Whether it is of that number and has bytes: a message or a string. One of
  /// another kind than its number's says nothing to those who know the number.
  bool isBytes(std::uint64_t Wanted) const {
    return Number == Wanted && !HasNumber;
  }
  bool isVarint(std::uint64_t Wanted) const {
    return Number == Wanted && HasNumber;
  }
  /// What has bytes; empty for a varint.
  Range content() const { return Content; }
  /// With its number, and how long it is.
  Range whole() const { return Whole; }
  /// Of a varint.
  std::int64_t value() const { return static_cast<std::int64_t>(Value); }
  /// Whether all of the message was gone through.
  bool atEnd() const { return At == End; }
  std::string text() const {
    // No path and no name is longer.
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
