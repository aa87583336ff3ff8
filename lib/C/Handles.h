//===- Handles.h - The objects behind the handles of the C API --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the handles of feature sets, advice and runners in the C API.
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

/// A handle with which C writes a FeatureSet. The handle does not own the
/// FeatureSet.
struct MLBridgeOpaqueFeatureSet {
  MLBridge::FeatureSet &Set;
  /// The first failure since the set was cleared. If the caller ignores the
  /// failed call's status, the next request that uses this feature set returns
  /// the same failure.
  MLBridge::Error Misuse;

  void clear() {
    Set.clear();
    Misuse = MLBridge::Error::success();
  }
};

/// A handle with which C reads tensors. The handle does not own the tensors.
struct MLBridgeOpaqueAdvice {
  MLBridge::Advice Tensors;
  /// Copies of names, strings and elements in forms that C can read.
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
