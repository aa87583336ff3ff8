//===- TensorSpecParser.h - Parses TensorSpecs from JSON --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorSpecParser: parses {"name": "embedding", "type": "float", "shape":
/// ["n", 300]}, as found in a model's metadata and signature.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H
#define MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H

#include "MLCompilerBridge/Extend/Model.h"

#include <simdjson.h>

namespace MLBridge::inprocess {

/// One parser maps equal extent names to the same negative number.
class TensorSpecParser {
public:
  /// Malformed, with the position and the reason.
  Expected<TensorSpec> parse(simdjson::dom::element Item);

private:
  Expected<std::int64_t> parseExtent(simdjson::dom::element Item);

  std::vector<std::string> Names;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H
