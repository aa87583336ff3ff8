//===- GRPCClock.h - Deadlines in gRPC's types ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts a Deadline to gRPC's time, and a Duration to milliseconds.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCCLOCK_H
#define MLBRIDGE_LIB_GRPC_GRPCCLOCK_H

#include "MLCompilerBridge/Deadline.h"

#include <climits>
#include <grpc/support/time.h>

namespace MLBridge::GRPC {

/// Returns a deadline in the past, for polling without waiting. Do not use the
/// current time for this. gRPC rounds it up to milliseconds, so polling would
/// wait for 1 or 2 ms.
inline gpr_timespec atOnce() { return gpr_inf_past(GPR_CLOCK_MONOTONIC); }

inline gpr_timespec timeOf(Deadline Until) {
  if (Until.isNever())
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(Until.remaining().count(), GPR_TIMESPAN));
}

/// Returns \p D in milliseconds. The result is at least 1 and at most INT_MAX,
/// which gRPC interprets as infinite.
inline int millisOf(Duration D) {
  using Millis = std::chrono::milliseconds;
  return static_cast<int>(std::clamp<Millis::rep>(
      std::chrono::duration_cast<Millis>(D).count(), 1, INT_MAX));
}

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCLOCK_H
