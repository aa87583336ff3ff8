//===- Run.cpp - Calls what TensorFlow's compiler made --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What XlaCompiledCpuFunction::Run does, without the object, which would
/// allocate buffers for each thread.
///
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "xla/executable_run_options.h"
#include "xla/service/custom_call_status_internal.h"

void mlbridge_xla_run(MLBridgeXLAFunction *function, void *result,
                      void **buffers) {
  // Without a thread pool, all is done in this thread.
  const xla::ExecutableRunOptions Options;
  // For custom calls to say that they failed; none is linked.
  XlaCustomCallStatus Status;
  function(result, &Options, /*arguments=*/nullptr, buffers, &Status,
           /*counters=*/nullptr);
}
