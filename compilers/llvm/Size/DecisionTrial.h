//===- DecisionTrial.h - Optimises a program with decisions -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A trial optimises a whole program as clang -Oz optimises its files, and
/// measures the linked code. Its caller can give inlining decisions, and a
/// pipeline other than that of -Oz.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_DECISIONTRIAL_H
#define MLBRIDGE_LLVM_SIZE_DECISIONTRIAL_H

#include "Inliner/InlineDecisions.h"
#include "Size/LinkedText.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class CallBase;
class Module;
} // namespace llvm

namespace MLBridge {

class InlineAdvisorSource;

/// A call site of a trial about which the inliner may decide either way.
struct CallSite {
  /// Names in the trial's module.
  std::string Callee, Caller;
  /// Names in the program's files. They differ, because linking files into one
  /// module renames local functions.
  std::string CalleeInFile, CallerInFile;
  /// See locationOf().
  std::string Location;
  /// LLVM's own decision.
  bool Default = false;
  /// The decision of the trial.
  bool Decision = false;
  /// True if other files may have copies of the callee (linkonce). The linker
  /// keeps one copy, and no copy if the callee is unused.
  bool CalleeIsLinkOnce = false;
  unsigned CalleeUses = 0;

  /// The site's key in a DecisionTable.
  std::string key() const { return decisionKey(CalleeInFile, Location); }
};

/// Returns the call site of \p Call. \p Default is LLVM's own decision, which
/// is also the decision of the trial.
CallSite callSiteOf(const llvm::CallBase &Call, bool Default);

/// True if no file of the program has both the caller and the callee, so that
/// only inlining at link time could inline \p Call.
bool areApart(const llvm::CallBase &Call);

/// Decisions by the keys of their call sites.
using DecisionTable = llvm::StringMap<bool>;

struct TrialResult {
  LinkedText Text;
  /// In the order of the inliner's requests.
  std::vector<CallSite> Sites;
};

/// A whole program and its trials. Only one thread at a time may use an object.
class TrialProgram {
public:
  /// Copies \p M, a program whose files clang has compiled with -Oz -Xclang
  /// -disable-llvm-passes and with locations. If \p KeepsExported is true,
  /// it is a shared library. Returns Unsupported if this LLVM cannot compile
  /// it.
  static Expected<TrialProgram> create(const llvm::Module &M,
                                       bool KeepsExported);

  /// Runs a trial in which \p Table decides about the call sites that it has.
  /// LLVM's heuristic decides about other call sites. \p Pipeline has the form
  /// of `opt -passes=`. If \p Pipeline is empty, the passes of clang -Oz run.
  Expected<TrialResult> run(const DecisionTable &Table,
                            llvm::StringRef Pipeline);
  /// Runs a trial in which the advisors of \p Source decide about all call
  /// sites. \p Pipeline is as above.
  Expected<LinkedText> run(std::shared_ptr<InlineAdvisorSource> Source,
                           llvm::StringRef Pipeline);

private:
  explicit TrialProgram(bool KeepsExported)
      : Meter(KeepsExported ? LinkRoots::Exported : LinkRoots::Main) {}

  /// Bitcode with the order of uses. Each trial parses it into a new context.
  std::string Bitcode;
  LinkedTextMeter Meter;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_DECISIONTRIAL_H
