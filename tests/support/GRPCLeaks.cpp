//===- GRPCLeaks.cpp - Leaks of gRPC --------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Suppresses the report of a few bytes that gRPC's name resolver (c-ares)
/// never frees.
///
//===----------------------------------------------------------------------===//

// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" const char *__lsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libcares.so\n";
}
