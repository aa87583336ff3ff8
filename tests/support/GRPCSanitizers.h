//===- GRPCSanitizers.h - Where gRPC cannot be looked at --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Skips a test that uses gRPC under TSan. GRPCRequestQueueTest.cpp, which uses
/// none of it, has what our two threads do to each other.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
#define MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H

#include "support/Sanitizers.h"

#define MLBRIDGE_SKIP_GRPC_UNDER_TSAN()                                        \
  if (MLBRIDGE_UNDER_TSAN)                                                     \
  GTEST_SKIP() << "the system's gRPC is not instrumented: TSan would not see " \
                  "how it hands memory from one thread to another"

#endif // MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
