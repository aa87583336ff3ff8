//===- TensorSpecParser.h - Parses TensorSpecs from JSON --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorSpecParser: parses the descriptions of tensors in a model's metadata
/// and signature, for example {"name": "embedding", "type": "float", "shape":
/// ["n", 300]}.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H
#define MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H

#include "MLCompilerBridge/Extend/Model.h"

#include <simdjson.h>

namespace MLBridge::inprocess {

/// Parses descriptions of tensors. An extent may be a name. One parser
/// represents equal names by the same negative number.
class TensorSpecParser {
public:
  /// Parses one description. Returns a Malformed error that names the tensor
  /// and the reason.
  Expected<TensorSpec> parse(simdjson::dom::element Item);

private:
  Expected<std::int64_t> parseExtent(simdjson::dom::element Item);

  std::vector<std::string> Names;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_TENSORSPECPARSER_H
