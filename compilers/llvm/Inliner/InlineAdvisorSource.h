//===- InlineAdvisorSource.h - Creates inline advisors ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InlineAdvisorSource is the interface to the source of decisions about call
/// sites: a model, a file, or a trial of a search.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINEADVISORSOURCE_H
#define MLBRIDGE_LLVM_INLINER_INLINEADVISORSOURCE_H

#include "llvm/Analysis/InlineAdvisor.h"

#include <memory>

namespace MLBridge {

/// Creates the inline advisors of one module. LLVM creates a new advisor for
/// each run of the inliner. This object has the state that all runs share.
class InlineAdvisorSource {
public:
  virtual ~InlineAdvisorSource() = default;

  /// Returns an advisor for a run of the inliner on \p M. Returns null if it
  /// has emitted an error. This object must outlive the advisor.
  virtual std::unique_ptr<llvm::InlineAdvisor>
  create(llvm::Module &M, llvm::ModuleAnalysisManager &MAM,
         llvm::FunctionAnalysisManager &FAM, const llvm::InlineParams &Params,
         llvm::InlineContext IC) = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINEADVISORSOURCE_H
