//===- Handles.h - What the handles of the C API point at -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The handles for tensors, which the callbacks of environments and of runners
/// lend to C as well as the runners do.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_HANDLES_H
#define MLBRIDGE_LIB_C_HANDLES_H

#include "C/AdviceCopies.h"
#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/MLModelRunner.h"

#include <memory>
#include <string>

/// A FeatureSet of somebody's, for C to write to.
struct MLBridgeOpaqueFeatureSet {
  MLBridge::FeatureSet &Set;
  /// The first failure since the set was cleared, which the request is to
  /// fail with where nobody looked at the status.
  MLBridge::Error Misuse;

  void clear() {
    Set.clear();
    Misuse = MLBridge::Error::success();
  }
};

/// Tensors of somebody's, for C to read.
struct MLBridgeOpaqueAdvice {
  MLBridge::Advice Tensors;
  /// In the forms that C wants: ended by a NUL, or converted.
  MLBridge::C::AdviceCopies Copies;

  void reset(MLBridge::Advice New = {}) {
    Tensors = New;
    Copies.clear();
  }
};

struct MLBridgeOpaqueModelRunner {
  explicit MLBridgeOpaqueModelRunner(
      std::unique_ptr<MLBridge::MLModelRunner> Runner)
      : Runner(std::move(Runner)) {}

  std::unique_ptr<MLBridge::MLModelRunner> Runner;
  MLBridge::FeatureSet RequestSet, DecisionSet;
  MLBridgeOpaqueFeatureSet Request{RequestSet, {}};
  MLBridgeOpaqueFeatureSet Decision{DecisionSet, {}};
  MLBridgeOpaqueAdvice Reply;
  std::string Description;
};

#endif // MLBRIDGE_LIB_C_HANDLES_H
