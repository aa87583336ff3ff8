//===- JSONText.cpp - Writes strings and integers as JSON -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSON strings and integers.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONText.h"

#include <array>
#include <charconv>
#include <cstring>

namespace MLBridge::serdes {

/// Maps each byte to the letter of its escape sequence. The letter is `u` if
/// the byte has no short escape sequence. It is 0 if the byte needs no escape.
static constexpr std::array<char, 256> Escapes = [] {
  std::array<char, 256> Table{};
  for (std::size_t Control = 0; Control < 0x20; ++Control)
    Table[Control] = 'u';
  Table['\b'] = 'b';
  Table['\f'] = 'f';
  Table['\n'] = 'n';
  Table['\r'] = 'r';
  Table['\t'] = 't';
  Table['"'] = '"';
  Table['\\'] = '\\';
  return Table;
}();

static char escapeOf(char C) { return Escapes[static_cast<unsigned char>(C)]; }

std::size_t quotedSize(std::string_view Text) {
  std::size_t Size = Text.size() + 2;
  for (char C : Text)
    if (char Escape = escapeOf(C))
      Size += Escape == 'u' ? 5 : 1;
  return Size;
}

char *writeQuoted(char *Out, std::string_view Text) {
  *Out++ = '"';
  for (char C : Text) {
    char Escape = escapeOf(C);
    if (!Escape) {
      *Out++ = C;
      continue;
    }
    *Out++ = '\\';
    *Out++ = Escape;
    if (Escape == 'u') {
      Out = writeText(Out, "00");
      *Out++ = static_cast<char>('0' + C / 16);
      *Out++ = "0123456789abcdef"[C % 16];
    }
  }
  *Out++ = '"';
  return Out;
}

char *writeText(char *Out, std::string_view Text) {
  return Out + Text.copy(Out, Text.size());
}

void appendQuoted(std::string &Out, std::string_view Text) {
  std::size_t Start = Out.size();
  Out.resize(Start + quotedSize(Text));
  writeQuoted(Out.data() + Start, Text);
}

template <typename T> static void appendNumber(std::string &Out, T Value) {
  char Digits[24];
  char *End = std::to_chars(std::begin(Digits), std::end(Digits), Value).ptr;
  Out.append(Digits, End);
}

void appendInteger(std::string &Out, std::uint64_t Value) {
  appendNumber(Out, Value);
}

void appendInteger(std::string &Out, std::int64_t Value) {
  appendNumber(Out, Value);
}

} // namespace MLBridge::serdes
