//===- StockPipeline.h - LLVM's own pipeline --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// StockPipeline selects one of LLVM's own pipelines. Sequences of actions
/// replace that pipeline and are compared with it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_STOCKPIPELINE_H
#define MLBRIDGE_LLVM_PIPELINE_STOCKPIPELINE_H

#include "llvm/Pass.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace MLBridge {

/// The level and phase, as clang and lld set them. The default is the pipeline
/// of `clang -Oz`.
struct StockPipeline {
  llvm::OptimizationLevel Level = llvm::OptimizationLevel::Oz;
  llvm::ThinOrFullLTOPhase Phase = llvm::ThinOrFullLTOPhase::None;
  bool isBeforeLink() const {
    return Phase == llvm::ThinOrFullLTOPhase::ThinLTOPreLink ||
           Phase == llvm::ThinOrFullLTOPhase::FullLTOPreLink;
  }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_STOCKPIPELINE_H
