//===- RttClient.h - The compiler's side of round trips ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares the client of `mlbridge bench rtt`, which a program and a pass run.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_RTTCLIENT_H
#define MLCOMPILERBRIDGE_BENCHMARKS_RTTCLIENT_H

#include "MLCompilerBridge/Span.h"

namespace MLBridge::bench {

/// Runs the client until the end of stdin. RttClient.cpp describes the
/// arguments, of which the first one is ignored. Mistakes end the process.
void runRttClient(Span<const char *const> Arguments);

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_RTTCLIENT_H
