//===- CreateRunner.h - From a spec to a handle ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What making runners has in common, with a factory and without.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_CREATERUNNER_H
#define MLBRIDGE_LIB_C_CREATERUNNER_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge::C {

/// Makes the runner that \p Spec names; either pointer may be null, which is
/// an error.
Error createRunner(const RunnerFactory &Factory, const char *Spec,
                   MLBridgeModelRunnerRef *Out);

/// Of a time that was given as \p Nanoseconds.
inline Error negativeTime(int64_t Nanoseconds) {
  return {ErrorCode::InvalidArgument,
          "expected a time of 0 ns or more, found " +
              std::to_string(Nanoseconds)};
}

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_CREATERUNNER_H
