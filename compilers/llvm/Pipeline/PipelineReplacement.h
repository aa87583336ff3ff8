//===- PipelineReplacement.h - Replaces LLVM's pipelines --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs other passes in place of LLVM's passes, in the pipelines of clang, opt
/// and lld.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_PIPELINEREPLACEMENT_H
#define MLBRIDGE_LLVM_PIPELINE_PIPELINEREPLACEMENT_H

#include "Pipeline/StockPipeline.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/PassManager.h"

#include <functional>

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Runs other passes on \p M in place of \p Stock. Returns false if LLVM's own
/// pipeline should run. If \p WhyNot is not empty, it is the reason why the
/// pipeline must not be replaced. The function reports failures itself.
using PipelineReplacement =
    std::function<bool(llvm::Module &M, llvm::ModuleAnalysisManager &MAM,
                       const StockPipeline &Stock, llvm::StringRef WhyNot)>;

/// Calls \p Replacement at the start of the pipelines that \p PB builds. If
/// \p Replacement returns true, skips LLVM's optional passes in the rest of the
/// pipeline. Required passes and passes of plug-ins still run. At -O1 to -O3,
/// except in ThinLTO's post-link pipelines, \p Replacement receives a reason
/// not to replace the pipeline. At -O0, \p Replacement is not called.
void replacePipelines(llvm::PassBuilder &PB,
                      const PipelineReplacement &Replacement);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_PIPELINEREPLACEMENT_H
