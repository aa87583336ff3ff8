//===- StockPipeline.h - LLVM's own pipeline --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// StockPipeline: the pipeline of LLVM that a sequence of actions replaces and
/// is compared with.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_STOCKPIPELINE_H
#define MLBRIDGE_LLVM_PHASEORDERING_STOCKPIPELINE_H

#include "llvm/Pass.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace MLBridge {

/// As in clang and lld; default: that of clang -Oz.
struct StockPipeline {
  llvm::OptimizationLevel Level = llvm::OptimizationLevel::Oz;
  llvm::ThinOrFullLTOPhase Phase = llvm::ThinOrFullLTOPhase::None;
  bool isBeforeLink() const {
    return Phase == llvm::ThinOrFullLTOPhase::ThinLTOPreLink ||
           Phase == llvm::ThinOrFullLTOPhase::FullLTOPreLink;
  }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_STOCKPIPELINE_H
