//===- FallbackModelRunner.cpp - Defers after a failure -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/FallbackModelRunner.h"

using namespace MLBridge;

FallbackModelRunner::FallbackModelRunner(std::unique_ptr<MLModelRunner> Inner)
    : Inner(std::move(Inner)) {
  setTimeout(this->Inner->timeout());
}

Expected<Advice>
FallbackModelRunner::evaluateUntyped(const FeatureSet &Features,
                                     const AdviceSpec &Wanted, Deadline Until) {
  if (!Cause) {
    Expected<Advice> Reply = Inner->ask(Features, Wanted, Until);
    // Do not fall back after an interrupt, because the model has not failed.
    if (Reply || Reply.code() == ErrorCode::Deferred || Until.isInterrupted())
      return Reply;
    Cause = Reply.takeError();
  }
  return Error::deferred(Inner->describe() + " failed: " + Cause.str());
}

void FallbackModelRunner::switchContext(std::string_view Name) {
  if (!Cause)
    Inner->switchContext(Name);
}

Error FallbackModelRunner::logOutcomeUntyped(const TensorView *Decision,
                                             std::optional<double> Reward) {
  if (!Cause)
    Cause = Inner->logOutcomeUntyped(Decision, Reward);
  return Error::success();
}

Error FallbackModelRunner::flush() { return Inner->flush(); }

Expected<std::optional<std::string>>
FallbackModelRunner::metadata(std::string_view Key) {
  if (!Cause) {
    Expected<std::optional<std::string>> Text = Inner->metadata(Key);
    if (Text)
      return Text;
    Cause = Text.takeError();
  }
  return std::optional<std::string>();
}

Error FallbackModelRunner::loadBeforeFork() {
  // Ignore an error, because the first request returns it again.
  static_cast<void>(Inner->loadBeforeFork());
  return Error::success();
}

std::string FallbackModelRunner::describe() const {
  return "fallback|" + Inner->describe();
}
