//===- CreateRunner.h - Creates runner handles from specs -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares helpers for the functions that create runners with and without a
/// factory.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_CREATERUNNER_H
#define MLBRIDGE_LIB_C_CREATERUNNER_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge::C {

/// Creates the runner for \p Spec. Returns InvalidArgument if \p Spec or \p Out
/// is null.
Error createRunner(const RunnerFactory &Factory, const char *Spec,
                   MLBridgeModelRunnerRef *Out);

inline Error negativeTime(int64_t Nanoseconds) {
  return {ErrorCode::InvalidArgument,
          "expected a time of 0 ns or more, found " +
              std::to_string(Nanoseconds)};
}

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_CREATERUNNER_H
