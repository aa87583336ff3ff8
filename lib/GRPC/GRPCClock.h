//===- GRPCClock.h - Deadlines as gRPC writes them --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From a Deadline to gRPC's time, and from a Duration to its milliseconds.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCCLOCK_H
#define MLBRIDGE_LIB_GRPC_GRPCCLOCK_H

#include "MLCompilerBridge/Deadline.h"

#include <climits>
#include <grpc/support/time.h>

namespace MLBridge::GRPC {

/// For those who look and do not wait: gRPC rounds up to its milliseconds, and
/// would wait for one or two.
inline gpr_timespec atOnce() { return gpr_inf_past(GPR_CLOCK_MONOTONIC); }

inline gpr_timespec timeOf(Deadline Until) {
  if (Until.isNever())
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(Until.remaining().count(), GPR_TIMESPAN));
}

/// At least one; INT_MAX, which is never, for what is beyond it.
inline int millisOf(Duration D) {
  using Millis = std::chrono::milliseconds;
  return static_cast<int>(std::clamp<Millis::rep>(
      std::chrono::duration_cast<Millis>(D).count(), 1, INT_MAX));
}

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCLOCK_H
