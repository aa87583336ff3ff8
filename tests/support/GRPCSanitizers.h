//===- GRPCSanitizers.h - Skips gRPC tests under TSan -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Skips a test that uses gRPC under TSan. GRPCRequestQueueTest.cpp does not
/// use gRPC, so it runs under TSan. It tests the state that two threads of this
/// library share.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
#define MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H

#include "support/Sanitizers.h"

#define MLBRIDGE_SKIP_GRPC_UNDER_TSAN()                                        \
  if (MLBRIDGE_UNDER_TSAN)                                                     \
  GTEST_SKIP() << "the system's gRPC is not instrumented, so TSan does not "   \
                  "see its synchronisation"

#endif // MLBRIDGE_TESTS_SUPPORT_GRPCSANITIZERS_H
