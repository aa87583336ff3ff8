//===- Handles.h - The objects behind the handles of the C API --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The handles of tensors, which runners and the callbacks of environments and
/// runners lend to C.
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

/// A FeatureSet for C to write; does not own it.
struct MLBridgeOpaqueFeatureSet {
  MLBridge::FeatureSet &Set;
  /// The first failure since the set was cleared. The request fails with it if
  /// the caller ignored the status.
  MLBridge::Error Misuse;

  void clear() {
    Set.clear();
    Misuse = MLBridge::Error::success();
  }
};

/// Tensors for C to read; does not own them.
struct MLBridgeOpaqueAdvice {
  MLBridge::Advice Tensors;
  /// The tensors in forms for C: ending with a NUL, or converted.
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
