//===- Main.cpp - A user of the installed library -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes requests to two models through the installed headers and library.
/// `none` must defer, and a pipe without a model must time out. The pipe needs
/// the whole library to be linked, including the JSON parser.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/MLModelRunner.h"

#include <chrono>
#include <cstdio>

using namespace MLBridge;

/// True if a request to the model \p Spec has the result \p Wanted.
static bool endsIn(ErrorCode Wanted, std::string_view Spec) {
  Expected<std::unique_ptr<MLModelRunner>> Runner = createModelRunner(Spec);
  if (!Runner) {
    std::fprintf(stderr, "%s\n", Runner.takeError().str().c_str());
    return false;
  }
  (*Runner)->setTimeout(std::chrono::milliseconds(200));
  (*Runner)->populateFeatures(std::pair{"callee_size", 12});
  Error E = (*Runner)->tryEvaluate<bool>().takeError();
  std::printf("%s\n", E.str().c_str());
  return E.code() == Wanted;
}

int main(int argc, char **argv) {
  bool Right =
      endsIn(ErrorCode::Deferred, "none") &&
      endsIn(ErrorCode::Timeout, "pipe:nobody?serdes=json&connect=200ms");
  // The modules of these specs are installed, but their runtimes are missing.
  for (int I = 1; I < argc; ++I)
    Right = Right && endsIn(ErrorCode::Unsupported, argv[I]);
  return Right ? 0 : 1;
}
