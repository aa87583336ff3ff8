//===- tests/support/Sanitizers.h - Sanitizers in tests ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Macros that state under which sanitizer a test runs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_SANITIZERS_H
#define MLBRIDGE_TESTS_SUPPORT_SANITIZERS_H

#if defined(__SANITIZE_THREAD__)
#define MLBRIDGE_UNDER_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MLBRIDGE_UNDER_ASAN 1
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MLBRIDGE_UNDER_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define MLBRIDGE_UNDER_ASAN 1
#endif
#endif
#ifndef MLBRIDGE_UNDER_TSAN
#define MLBRIDGE_UNDER_TSAN 0
#endif
#ifndef MLBRIDGE_UNDER_ASAN
#define MLBRIDGE_UNDER_ASAN 0
#endif

/// Skips a test under TSan if its children start threads or if it forks while
/// threads run.
#define MLBRIDGE_SKIP_FORKS_UNDER_TSAN()                                       \
  if (MLBRIDGE_UNDER_TSAN)                                                     \
  GTEST_SKIP() << "TSan ends a child that starts threads"

#endif // MLBRIDGE_TESTS_SUPPORT_SANITIZERS_H
