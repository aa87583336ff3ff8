//===- DecisionReplay.h - Replays a file of decisions -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// With `-mlbridge-inliner=decisions:FILE`, a file of decisions lists the calls
/// to inline and the calls not to inline. LLVM's heuristic decides about all
/// other calls.
///
/// LLVM's own replay, -cgscc-inline-replay, inlines every call that the file
/// lists, even if the callee is weak and the linker may replace it. This replay
/// checks that inlining is legal, and reports decisions that it cannot apply.
/// It also finds calls that edits of the source have moved.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H
#define MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H

#include "Inliner/InlineAdvisorSource.h"
#include "Inliner/InlineDecisions.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>

namespace MLBridge {

/// The parts of a value of -mlbridge-inliner.
struct DecisionSpec {
  /// The spec of the model, with `|none` in place of `|decisions:FILE`. Empty
  /// for `decisions:FILE` alone, which needs no model.
  std::string Model;
  /// The path of a file of decisions, or an empty string.
  std::string File;
};

/// Splits \p Spec, which may be `decisions:FILE`, or end with `|decisions:FILE`
/// as in `record:LOG|decisions:FILE`.
DecisionSpec parseDecisionSpec(llvm::StringRef Spec);

/// Applies the decisions of a file to a module, and counts them.
class ReplayedModule final : public InlineAdvisorSource {
public:
  /// \p Prefix starts each printed line.
  ReplayedModule(InlineDecisions File, std::string Prefix,
                 const llvm::Module &M);
  ReplayedModule(const ReplayedModule &) = delete;
  ReplayedModule &operator=(const ReplayedModule &) = delete;
  ~ReplayedModule() override;

  std::unique_ptr<llvm::InlineAdvisor>
  create(llvm::Module &M, llvm::ModuleAnalysisManager &,
         llvm::FunctionAnalysisManager &FAM, const llvm::InlineParams &Params,
         llvm::InlineContext IC) override;

  /// Prepares a run of the inliner that \p IC describes. The first run finds
  /// calls that have moved.
  void beginRun(const llvm::Module &M, llvm::InlineContext IC);
  /// Returns the decision about \p Call, or nothing if the file does not decide
  /// about this call or if inlining is illegal.
  std::optional<bool> decide(llvm::CallBase &Call,
                             llvm::FunctionAnalysisManager &FAM);

private:
  InlineDecisions File;
  const std::string Prefix;
  /// The number of decisions about calls that are on other lines now, or
  /// nothing before the first run of an inliner.
  std::optional<unsigned> Moved;
  /// The decisions whose caller this module defines.
  llvm::BitVector OfModule;
  llvm::BitVector Applied, Refused;
  std::string FirstRefusal;
  unsigned WithLocation = 0, WithoutLocation = 0;
};

/// Reads the decisions at \p Path for the module \p M. Emits an error and
/// returns null if the file cannot be read or parsed.
///
/// When the object is destroyed, it prints a remark if a decision to inline is
/// illegal, and a remark if no call site has a location. With
/// -mlbridge-print-statistics, it also prints how many decisions were applied.
std::unique_ptr<ReplayedModule> openDecisions(llvm::StringRef Path,
                                              llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H
