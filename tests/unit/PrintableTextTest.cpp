//===- PrintableTextTest.cpp - Foreign text in messages ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/PrintableText.h"

#include <gtest/gtest.h>

#include <iconv.h>
#include <random>

using namespace MLBridge;

/// True if the C library accepts the text as UTF-8.
static bool isUTF8(std::string Text) {
  static void *const Converter = ::iconv_open("UTF-32LE", "UTF-8");
  std::string Wide(4 * Text.size() + 4, '\0');
  char *In = Text.data(), *Out = Wide.data();
  std::size_t InLeft = Text.size(), OutLeft = Wide.size();
  return ::iconv(Converter, &In, &InLeft, &Out, &OutLeft) == 0;
}

TEST(PrintableText, LeavesPrintableTextAlone) {
  for (std::string_view Text :
       {"", "policy.onnx", "C:\\models\\a b", "schr\u00F6dinger",
        "\u6A21\u578B", "\U0001F422"})
    EXPECT_EQ(printable(Text), Text);
  EXPECT_EQ(printable(std::string(MostPrinted, 'a')),
            std::string(MostPrinted, 'a'));
}

TEST(PrintableText, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mred"), "a\\x1b[31mred");
  EXPECT_EQ(printable("one\r\n\ttwo"), "one\\r\\n\\ttwo");
  EXPECT_EQ(printable(std::string_view("\0\x07\x7f", 3)), "\\x00\\x07\\x7f");
  // CSI as a single character, which some terminals treat like ESC [.
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u{9b}31m");
  // A terminal displays this as "cod.exe", backwards. The string is written in
  // parts, so that no editor reverses this line.
  EXPECT_EQ(printable(std::string("\xE2\x80") + "\xAE" + "exe.doc"),
            "\\u{202e}exe.doc");
  EXPECT_EQ(printable(std::string("\xE2\x81") + "\xA6" + "a\u2028" + "b"),
            "\\u{2066}a\\u{2028}b");
}

TEST(PrintableText, EscapesBytesThatAreNotUTF8) {
  EXPECT_EQ(printable("\x80"
                      "a\xFF"),
            "\\x80a\\xff");
  // A truncated sequence, an overlong one, a surrogate, and a number beyond the
  // last code point.
  EXPECT_EQ(printable("a\xE6\xA8"), "a\\xe6\\xa8");
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(PrintableText, KeepsBeginningAndEndOfALongText) {
  EXPECT_EQ(printable("0123456789abc", 13), "0123456789abc");
  EXPECT_EQ(printable("0123456789abcd", 13), "01234...9abcd");
  const std::string Short =
      printable("/begin/" + std::string(100'000, 'x') + "/end.onnx");
  EXPECT_EQ(Short.size(), MostPrinted);
  EXPECT_TRUE(Short.starts_with("/begin/xx"));
  EXPECT_TRUE(Short.ends_with("xx/end.onnx"));
}

TEST(PrintableText, CutsNeitherCharactersNorEscapes) {
  std::string Turtles, Controls;
  for (int I = 0; I < 100; ++I) {
    Turtles += "\xF0\x9F\x90\xA2";
    Controls += '\x01';
  }
  EXPECT_EQ(printable(Turtles, 16), "\xF0\x9F\x90\xA2...\xF0\x9F\x90\xA2");
  EXPECT_EQ(printable(Controls, 14), "\\x01...\\x01");
  EXPECT_EQ(printable(Controls, 10), "\\x01...");
  // Limits that are shorter than an ellipsis, and empty text.
  EXPECT_EQ(printable("abcdef", 2), "ab");
  EXPECT_EQ(printable("abcdef", 0), "");
}

TEST(PrintableText, IsAlwaysBoundedAndPrintable) {
  std::mt19937 Random(1);
  for (int Round = 0; Round < 5'000; ++Round) {
    std::string Text(Random() % 64, '\0');
    for (char &C : Text)
      // Half of the bytes look like parts of UTF-8 sequences.
      C = static_cast<char>(Random() % 2 ? 0x80 + Random() % 0x80
                                         : Random() % 0x100);
    const std::size_t Most = Random() % 48;
    const std::string Shown = printable(Text, Most);
    ASSERT_LE(Shown.size(), Most);
    ASSERT_TRUE(isUTF8(Shown));
    for (char C : Shown)
      ASSERT_GE(static_cast<unsigned char>(C), 0x20);
    // Messages quote other messages, so escaping text twice must change
    // nothing.
    ASSERT_EQ(printable(Shown, Most), Shown);
  }
}
