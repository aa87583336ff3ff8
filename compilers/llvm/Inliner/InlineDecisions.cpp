//===- InlineDecisions.cpp - Decisions of a file about call sites ---------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the lines of a decision file.
///
//===----------------------------------------------------------------------===//

#include "Inliner/InlineDecisions.h"

#include "Support/ReadFile.h"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/ReplayInlineAdvisor.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstrTypes.h"

using namespace llvm;

namespace MLBridge {

static constexpr StringLiteral Inlined = "' inlined into '";
static constexpr StringLiteral NotInlined = "' will not be inlined into '";
static constexpr StringLiteral AtCallSite = " at callsite ";

std::string decisionKey(StringRef Callee, StringRef Location) {
  // Separate the two by a line break, which no name in a decision file has.
  return (Callee + "\n" + Location).str();
}

std::string decisionLine(StringRef Callee, StringRef Caller, StringRef Location,
                         bool Inline) {
  return ("x: '" + Callee + (Inline ? Inlined : NotInlined) + Caller + "'" +
          AtCallSite + Location + ";")
      .str();
}

Error InlineDecisions::add(StringRef Line) {
  const auto [Functions, After] = Line.split(AtCallSite);
  const bool IsInlined = !Functions.contains(NotInlined);
  const auto [Before, Caller] =
      Functions.split(IsInlined ? Inlined : NotInlined);
  const StringRef Callee = Before.rsplit(": '").second;
  const StringRef Location = After.split(';').first;
  if (Callee.empty() || !Caller.ends_with("'") || Location.empty())
    return Error(ErrorCode::Malformed,
                 "expected \"x: 'CALLEE' inlined into 'CALLER' at callsite "
                 "LOCATION;\", or \"will not be inlined\" in its place, found "
                 "\"" +
                     Line.take_front(200).str() + "\"");
  const auto [At, IsNew] = Indices.try_emplace(
      decisionKey(Callee, Location), static_cast<int>(Decisions.size()));
  if (!IsNew && Decisions[At->second].Inline != IsInlined)
    return Error(ErrorCode::Malformed, ("'" + Callee + "' at " + Location +
                                        " has two different decisions")
                                           .str());
  if (IsNew)
    Decisions.push_back({Caller.drop_back().str(), IsInlined});
  return Error::success();
}

bool InlineDecisions::isAboutFiles(StringRef Line) {
  return Line.starts_with(PipelineStart) || Line.starts_with(FileStart);
}

Expected<InlineDecisions> InlineDecisions::parse(StringRef Text) {
  InlineDecisions Result;
  Error Failure = parseLines(Text, [&](StringRef Line) {
    return Line.trim().empty() || isAboutFiles(Line) ? Error::success()
                                                     : Result.add(Line);
  });
  if (Failure)
    return Failure;
  return Result;
}

Expected<InlineDecisions> InlineDecisions::read(StringRef Path) {
  Expected<std::unique_ptr<MemoryBuffer>> File = readFile(Path, MaxBytes);
  if (!File)
    return File.takeError();
  return parse((*File)->getBuffer());
}

int InlineDecisions::find(StringRef Callee, StringRef Location) const {
  const auto At = Indices.find(decisionKey(Callee, Location));
  return At == Indices.end() ? -1 : At->second;
}

StringMap<bool> InlineDecisions::table() const {
  StringMap<bool> Result;
  for (const auto &Key : Indices)
    Result[Key.first()] = Decisions[Key.second].Inline;
  return Result;
}

std::string locationOf(const CallBase &Call) {
  if (!Call.getDebugLoc())
    return {};
  return formatCallSiteLocation(
      Call.getDebugLoc(), {CallSiteFormat::Format::LineColumnDiscriminator});
}

StringRef nameInFile(const DISubprogram &Program) {
  const StringRef Linked = Program.getLinkageName();
  return Linked.empty() ? Program.getName() : Linked;
}

StringRef nameInFile(const Function &F) {
  const DISubprogram *Program = F.getSubprogram();
  return F.hasLocalLinkage() && Program ? nameInFile(*Program) : F.getName();
}

const char *whyNoChoice(CallBase &Call, FunctionAnalysisManager &FAM) {
  Function &Callee = *Call.getCalledFunction();
  const std::optional<InlineResult> ByAttribute =
      getAttributeBasedInliningDecision(
          Call, &Callee, FAM.getResult<TargetIRAnalysis>(Callee),
          [&](Function &F) -> const TargetLibraryInfo & {
            return FAM.getResult<TargetLibraryAnalysis>(F);
          });
  if (ByAttribute)
    return ByAttribute->isSuccess() ? "always inlined by an attribute"
                                    : ByAttribute->getFailureReason();
  const InlineResult Viable = isInlineViable(Callee);
  return Viable.isSuccess() ? nullptr : Viable.getFailureReason();
}

} // namespace MLBridge
