//===- Run.cpp - Calls functions compiled by XLA --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Calls a compiled function as XlaCompiledCpuFunction::Run does. This file
/// does not use that class, because it would allocate buffers for each thread.
///
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "xla/executable_run_options.h"
#include "xla/service/custom_call_status_internal.h"

void mlbridge_xla_run(MLBridgeXLAFunction *function, void *result,
                      void **buffers) {
  // Set no thread pool, so that everything runs in this thread.
  const xla::ExecutableRunOptions Options;
  // Custom calls would report failures in this object, but no custom calls are
  // linked.
  XlaCustomCallStatus Status;
  function(result, &Options, /*arguments=*/nullptr, buffers, &Status,
           /*counters=*/nullptr);
}
