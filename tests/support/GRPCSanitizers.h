//===- GRPCSanitizers.h - Where gRPC cannot be looked at --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Skips a test that uses gRPC under TSan. GRPCMailboxTest.cpp, which uses none
/// of it, has what our two threads do to each other.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
#define MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MLBRIDGE_UNDER_TSAN 1
#endif
#endif
#ifndef MLBRIDGE_UNDER_TSAN
#define MLBRIDGE_UNDER_TSAN 0
#endif

#define MLBRIDGE_SKIP_GRPC_UNDER_TSAN()                                        \
  if (MLBRIDGE_UNDER_TSAN)                                                     \
  GTEST_SKIP() << "the system's gRPC is not instrumented: TSan would not see " \
                  "how it hands memory from one thread to another"

#endif // MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
