//===- PrintableText.h - Text from outside, for messages --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// printable(): what a message quotes of a path, a model's file or a peer. Such
/// text may be megabytes long, and may hold escape sequences that a terminal
/// obeys.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H
#define MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace MLBridge {

/// Enough for the paths and names that occur, and short enough for a line.
inline constexpr std::size_t MostPrinted = 200;

/// \p Text as valid UTF-8 of one line and of at most \p MaxBytes bytes.
///
/// Control characters, those that change the direction of text, and bytes that
/// are not UTF-8 become `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`. A backslash
/// stays as it is: printable text is not changed, so a message may pass through
/// here more than once. Of a text that is too long, the beginning and the end
/// are kept, with `...` between them: a path's end matters as much as its
/// beginning. Takes time for \p MaxBytes, not for the whole text.
std::string printable(std::string_view Text,
                      std::size_t MaxBytes = MostPrinted);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H
