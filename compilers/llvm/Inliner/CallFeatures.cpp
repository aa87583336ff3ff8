//===- CallFeatures.cpp - Further features of calls -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes features of calls from the IR alone.
///
//===----------------------------------------------------------------------===//

#include "Inliner/CallFeatures.h"

#include "Support/ReadFile.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace MLBridge {

const std::array<const char *, NumCallFeatures> CallFeatureNames = {
#define MLBRIDGE_FEATURE(ENUMERATOR, NAME) NAME,
    MLBRIDGE_CALL_FEATURES(MLBRIDGE_FEATURE)
#undef MLBRIDGE_FEATURE
};

/// The maximum size of a file of counts, in bytes.
static constexpr std::uint64_t MaxCountBytes = std::uint64_t(1) << 30;

Expected<CalleeFiles> CalleeFiles::read(StringRef Path) {
  Expected<std::unique_ptr<MemoryBuffer>> File = readFile(Path, MaxCountBytes);
  if (!File)
    return File.takeError();
  CalleeFiles Result;
  auto Parse = [&](StringRef Line) {
    // The command `uniq -c` indents the counts.
    const auto [Count, Name] = Line.trim().split(' ');
    if (Count.empty())
      return Error::success();
    std::int64_t Value = 0;
    const StringRef Function = Name.ltrim();
    if (Count.getAsInteger(10, Value) || Value < 1 || Function.empty())
      return Error(ErrorCode::Malformed,
                   "expected \"COUNT NAME\" with a count of 1 or more, found "
                   "\"" +
                       Line.take_front(200).str() + "\"");
    if (Result.Counts.try_emplace(Function, Value).first->second != Value)
      return Error(ErrorCode::Malformed,
                   ("'" + Function + "' has two different counts").str());
    return Error::success();
  };
  if (Error E = parseLines((*File)->getBuffer(), Parse))
    return E;
  return Result;
}

/// True if the linker keeps one of several copies of \p F.
static bool isMerged(const Function &F) {
  return F.hasLinkOnceLinkage() || F.hasWeakODRLinkage();
}

std::int64_t CalleeFiles::of(const Function &Callee) const {
  if (Callee.hasLocalLinkage())
    return 1;
  const auto Count = Counts.find(Callee.getName());
  return Count != Counts.end() ? Count->second : !isMerged(Callee);
}

std::array<std::int64_t, NumCallFeatures>
callFeatures(const CallBase &Call, const CalleeFiles &Files) {
  const Function &Callee = *Call.getCalledFunction();
  const Function &Caller = *Call.getCaller();
  std::int64_t OtherUses = 0, CallsInCaller = 0;
  for (const Use &Of : Callee.uses()) {
    const auto *User = dyn_cast<CallBase>(Of.getUser());
    const bool IsCall = User && User->isCallee(&Of);
    OtherUses += !IsCall;
    CallsInCaller += IsCall && User->getCaller() == &Caller;
  }
  std::array<std::int64_t, NumCallFeatures> Result = {};
  const auto Set = [&](CallFeature Feature, std::int64_t Value) {
    Result[std::size_t(Feature)] = Value;
  };
  Set(CallFeature::CalleeIsMerged, isMerged(Callee));
  Set(CallFeature::CalleeIsLocal, Callee.hasLocalLinkage());
  Set(CallFeature::CallerIsMerged, isMerged(Caller));
  Set(CallFeature::CallerIsLocal, Caller.hasLocalLinkage());
  Set(CallFeature::CalleeUses, Callee.getNumUses());
  Set(CallFeature::CallerUses, Caller.getNumUses());
  Set(CallFeature::CalleeOtherUses, OtherUses);
  Set(CallFeature::CalleeCallsInCaller, CallsInCaller);
  Set(CallFeature::CalleeIsDiscardable, Callee.isDiscardableIfUnused());
  Set(CallFeature::CalleeInstructions, Callee.getInstructionCount());
  Set(CallFeature::CallerInstructions, Caller.getInstructionCount());
  Set(CallFeature::ArgumentCount, Call.arg_size());
  Set(CallFeature::ReturnsValue, !Call.getType()->isVoidTy());
  Set(CallFeature::IsInvoke, isa<InvokeInst>(Call));
  Set(CallFeature::CalleeIsNounwind, Callee.doesNotThrow());
  Set(CallFeature::CalleeFiles, Files.of(Callee));
  return Result;
}

} // namespace MLBridge
