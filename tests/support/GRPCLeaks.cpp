//===- GRPCLeaks.cpp - What gRPC keeps for good ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library that looks up names for gRPC keeps a few bytes, once.
///
//===----------------------------------------------------------------------===//

// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" const char *__lsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libcares.so\n";
}
