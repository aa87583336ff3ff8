//===- write-onnx.cpp - An ONNX model for tests ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `write-onnx FILE LIMIT [FEATURE]` writes a model for the inliner to FILE. It
/// inlines if FEATURE (by default callee_basic_block_count) is below LIMIT.
///
//===----------------------------------------------------------------------===//

#include "support/ONNXWriter.h"

#include <cstdio>
#include <cstdlib>

using namespace MLBridge;
using namespace MLBridge::test;

int main(int Count, char **Arguments) {
  if (Count != 3 && Count != 4) {
    std::fprintf(stderr, "usage: write-onnx FILE LIMIT [FEATURE]\n");
    return 2;
  }
  const std::string Feature =
      Count == 4 ? Arguments[3] : "callee_basic_block_count";
  const std::vector<std::int64_t> Limit{std::atol(Arguments[2])};
  ONNXWriter()
      .input(Feature, ElementType::Int64, {1})
      .constant("limit", {1}, Limit)
      .node("Less", {Feature, "limit"}, {"inlining_decision"})
      .output("inlining_decision", ElementType::Bool, {1})
      .write(Arguments[1]);
  return 0;
}
