//===- PrintableText.h - Makes external text printable ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines printable(), which prepares text from a path, a model's file or a
/// peer for an error message. Such text may be megabytes long and contain
/// terminal escape sequences.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H
#define MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace MLBridge {

/// The default limit in bytes. Usual paths and names are shorter.
inline constexpr std::size_t MostPrinted = 200;

/// Returns \p Text as one line of valid UTF-8 of at most \p MaxBytes bytes.
///
/// Control characters, characters that change the direction of text, and bytes
/// that are not UTF-8 are escaped, for example as `\n`, `\x1b` or `\u{202e}`.
/// Printable text, including backslashes, does not change, so a second call has
/// no effect. If the text is too long, `...` replaces its middle. The run time
/// depends on \p MaxBytes, not on the length of the text.
std::string printable(std::string_view Text,
                      std::size_t MaxBytes = MostPrinted);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_PRINTABLETEXT_H
