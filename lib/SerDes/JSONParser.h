//===- JSONParser.h - Reading JSON with simdjson ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A reusable simdjson parser, for the JSON format and for the bitstream's
/// header. It parses values on demand and validates unread values only
/// superficially. Therefore, callers must read every value that they rely on.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONPARSER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONPARSER_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include <simdjson.h>

#include <algorithm>

namespace MLBridge::serdes {

namespace ondemand = simdjson::ondemand;

static_assert(BaseSerDes::Padding >= simdjson::SIMDJSON_PADDING,
              "simdjson reads this far past a message");

/// Returns a Malformed error "<What>: <simdjson's message for Code>".
inline Error jsonError(simdjson::error_code Code, std::string_view What) {
  return {ErrorCode::Malformed,
          std::string(What) + ": " + simdjson::error_message(Code)};
}

class JSONParser {
public:
  /// Starts reading \p Text. BaseSerDes::Padding readable bytes must follow \p
  /// Text. \p Document is valid until the next start().
  simdjson::error_code start(std::string_view Text,
                             ondemand::document &Document) {
    // Grow geometrically. simdjson itself would reallocate for every text that
    // is one byte longer than all texts before.
    if (Text.size() > Parser.max_capacity())
      return simdjson::CAPACITY;
    if (Text.size() > Parser.capacity()) {
      std::size_t Capacity =
          std::max({Text.size(), Parser.capacity() / 2 * 3, SmallestCapacity});
      Capacity = std::min(Capacity, Parser.max_capacity());
      if (simdjson::error_code E = Parser.allocate(Capacity))
        return E;
    }
    return Parser
        .iterate(Text.data(), Text.size(), Text.size() + BaseSerDes::Padding)
        .get(Document);
  }

  /// Returns true if only white space follows the values that have been read.
  static bool isAtEnd(ondemand::document &Document) {
    return Document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  }

private:
  static constexpr std::size_t SmallestCapacity = 4096;

  ondemand::parser Parser;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONPARSER_H
