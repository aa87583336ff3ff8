//===- NoneModelRunner.h - Defers every decision ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines NoneModelRunner, which leaves every decision to the compiler. The
/// spec is `none`. With `record:FILE|none`, a compiler logs its own decisions
/// for imitation learning.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_NONEMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_NONEMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

class NoneModelRunner final : public MLModelRunner {
public:
  std::string describe() const override { return "none"; }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &, const AdviceSpec &,
                                   Deadline) override {
    return Error::deferred("the runner 'none' decides nothing");
  }
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_NONEMODELRUNNER_H
