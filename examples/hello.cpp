//===- hello.cpp - Asks a model whether to inline ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Run `.venv/bin/python examples/hello.py`, then this program:
//   build/release/examples/hello [SPEC]        (default: pipe:/tmp/hello)
#include "MLCompilerBridge/MLModelRunner.h"

#include <cstdio>
#include <vector>

int main(int argc, char **argv) {
  auto Runner =
      MLBridge::createModelRunner(argc > 1 ? argv[1] : "pipe:/tmp/hello");
  if (!Runner) {
    std::fprintf(stderr, "%s\n", Runner.takeError().str().c_str());
    return 1;
  }
  for (int CalleeSize : {3, 12, 500}) {
    std::vector<float> Embedding(300, 1.0f / CalleeSize);
    (*Runner)->populateFeatures(std::pair{"callee_size", CalleeSize},
                                std::pair{"embedding", Embedding});
    bool ShouldInline = (*Runner)->evaluate<bool>();
    std::printf("callee of size %3d: inline? %s\n", CalleeSize,
                ShouldInline ? "yes" : "no");
  }
}
