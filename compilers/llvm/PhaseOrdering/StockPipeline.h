//===- StockPipeline.h - What LLVM would run by itself ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// StockPipeline: which of LLVM's own pipelines a sequence of actions takes the
/// place of, and is compared with.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_STOCKPIPELINE_H
#define MLBRIDGE_LLVM_PHASEORDERING_STOCKPIPELINE_H

#include "llvm/Pass.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace MLBridge {

/// As clang and lld have it; that of clang -Oz unless it is said otherwise.
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
