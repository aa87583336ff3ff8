//===- JSONText.h - Writes strings and integers as JSON ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that write JSON strings and integers, for the JSON format and for
/// the bitstream's header. They escape only the characters that JSON requires:
/// `"`, `\` and control characters.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONTEXT_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONTEXT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace MLBridge::serdes {

/// Returns the number of bytes that writeQuoted() writes for \p Text.
std::size_t quotedSize(std::string_view Text);
/// Writes the UTF-8 string \p Text as a JSON string. Returns the end of the
/// written text.
char *writeQuoted(char *Out, std::string_view Text);
/// Writes \p Text unchanged. Returns the end of the written text.
char *writeText(char *Out, std::string_view Text);

void appendQuoted(std::string &Out, std::string_view Text);
void appendInteger(std::string &Out, std::uint64_t Value);
void appendInteger(std::string &Out, std::int64_t Value);

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONTEXT_H
