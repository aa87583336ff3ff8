//===- PrintableText.cpp - Makes external text printable ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/PrintableText.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <vector>

using namespace MLBridge;

static constexpr std::string_view Ellipsis = "...";

//===----------------------------------------------------------------------===//
// Characters
//===----------------------------------------------------------------------===//

namespace {

/// One character of UTF-8, or one byte that is not valid UTF-8.
struct Character {
  std::uint32_t Code = 0;
  std::size_t NumBytes = 1;
  bool IsValid = false;
};

} // namespace

static bool isContinuation(char Byte) {
  return (static_cast<unsigned char>(Byte) & 0xC0) == 0x80;
}

/// Returns the first character of \p Text, which is not empty.
static Character decode(std::string_view Text) {
  const auto Lead = static_cast<unsigned char>(Text.front());
  if (Lead < 0x80)
    return {Lead, 1, true};
  // Lead bytes from C2 to F4 begin sequences of 2 to 4 bytes.
  if (Lead < 0xC2 || Lead > 0xF4)
    return {Lead, 1, false};
  const std::size_t NumBytes = Lead < 0xE0 ? 2 : Lead < 0xF0 ? 3 : 4;
  if (Text.size() < NumBytes)
    return {Lead, 1, false};
  std::uint32_t Code = Lead & (0x7Fu >> NumBytes);
  for (char Byte : Text.substr(1, NumBytes - 1)) {
    if (!isContinuation(Byte))
      return {Lead, 1, false};
    Code = Code << 6 | (static_cast<unsigned char>(Byte) & 0x3Fu);
  }
  const bool IsOverlong =
      (NumBytes == 3 && Code < 0x800) || (NumBytes == 4 && Code < 0x10000);
  const bool IsSurrogate = Code >= 0xD800 && Code <= 0xDFFF;
  if (IsOverlong || IsSurrogate || Code > 0x10FFFF)
    return {Lead, 1, false};
  return {Code, NumBytes, true};
}

/// Returns whether a terminal would interpret the character instead of showing
/// it.
static bool isControl(std::uint32_t Code) {
  return Code < 0x20 || (Code >= 0x7F && Code < 0xA0) ||
         // Line and paragraph separators, and characters that change the
         // direction of text.
         Code == 0x061C || Code == 0x200E || Code == 0x200F ||
         (Code >= 0x2028 && Code <= 0x202E) ||
         (Code >= 0x2066 && Code <= 0x2069);
}

static void appendHex(std::string &Out, std::uint32_t Number) {
  char Digits[8];
  char *End =
      std::to_chars(std::begin(Digits), std::end(Digits), Number, 16).ptr;
  if (End - Digits == 1)
    Out += '0';
  Out.append(Digits, End);
}

/// Appends the printable form of the first character of \p Text, and removes
/// the character from \p Text.
static void appendNext(std::string &Out, std::string_view &Text) {
  const Character C = decode(Text);
  if (C.IsValid && !isControl(C.Code)) {
    Out.append(Text.substr(0, C.NumBytes));
  } else if (C.Code == '\n') {
    Out += "\\n";
  } else if (C.Code == '\t') {
    Out += "\\t";
  } else if (C.Code == '\r') {
    Out += "\\r";
  } else if (C.Code < 0x80 || !C.IsValid) {
    Out += "\\x";
    appendHex(Out, C.Code);
  } else {
    Out += "\\u{";
    appendHex(Out, C.Code);
    Out += '}';
  }
  Text.remove_prefix(C.NumBytes);
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// Removes the longest prefix of \p Text whose printable form has at most
/// \p Max bytes. Returns the printable form.
static std::string takeHead(std::string_view &Text, std::size_t Max) {
  std::string Head;
  while (!Text.empty()) {
    std::string_view Rest = Text;
    const std::size_t Before = Head.size();
    appendNext(Head, Rest);
    if (Head.size() > Max) {
      Head.resize(Before);
      break;
    }
    Text = Rest;
  }
  return Head;
}

/// Finds the longest suffix of \p Text whose printable form has at most \p Max
/// bytes. Returns the printable form.
static std::string takeTail(std::string_view Text, std::size_t Max) {
  // Only the last Max bytes can be in the result, because the printable form of
  // a character is never shorter than the character.
  Text.remove_prefix(Text.size() - std::min(Text.size(), Max));
  // Skip the remaining bytes of a character whose first bytes were removed.
  constexpr std::size_t MaxContinued = 3;
  for (std::size_t I = 0;
       I < MaxContinued && !Text.empty() && isContinuation(Text.front()); ++I)
    Text.remove_prefix(1);
  std::string Tail;
  std::vector<std::size_t> Starts;
  while (!Text.empty()) {
    Starts.push_back(Tail.size());
    appendNext(Tail, Text);
  }
  for (std::size_t Start : Starts)
    if (Tail.size() - Start <= Max)
      return Tail.substr(Start);
  return {};
}

std::string MLBridge::printable(std::string_view Text, std::size_t MaxBytes) {
  std::string_view Rest = Text;
  std::string Whole = takeHead(Rest, MaxBytes);
  if (Rest.empty())
    return Whole;
  if (MaxBytes < Ellipsis.size())
    return Whole;
  const std::size_t Room = MaxBytes - Ellipsis.size();
  Rest = Text;
  std::string Short = takeHead(Rest, Room - Room / 2);
  Short += Ellipsis;
  return Short += takeTail(Rest, Room / 2);
}
