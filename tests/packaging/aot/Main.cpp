//===- Main.cpp - A program with linked-in models -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes requests to the models that mlbridge_add_aot_model linked into this
/// program.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/AOTModel.h"
#include "sequence.h"
#include "several.h"

#include <cstdio>

using namespace MLBridge;

int main() {
  RunnerFactory Factory;
  addBuiltinModels(Factory,
                   {&mlbridge_aot_model_several, &mlbridge_aot_model_sequence});
  auto Runner = Factory.create("builtin:sequence?output=best");
  if (!Runner) {
    std::fprintf(stderr, "%s\n", Runner.takeError().str().c_str());
    return 1;
  }
  const std::vector<std::int64_t> Tokens(12, 7);
  const std::vector<float> State(8, 0.5F);
  (*Runner)->populateFeatures(std::pair{"tokens", Tokens},
                              std::pair{"state", State});
  Expected<std::int64_t> Best = (*Runner)->tryEvaluate<std::int64_t>();
  if (!Best) {
    std::fprintf(stderr, "%s\n", Best.takeError().str().c_str());
    return 1;
  }
  std::printf("builtin:sequence chooses %d\n", int(*Best));
  return *Best >= 0 && *Best < 5 ? 0 : 1;
}
