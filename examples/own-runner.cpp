//===- examples/own-runner.cpp - A runner of your own -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A runner whose model is a threshold inside your compiler. Because the runner
// has a scheme, model specs can name it and combine it with decorators:
//   build/release/examples/own-runner 'record:/tmp/log|threshold:100'
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include <cstdio>
#include <cstdlib>

using namespace MLBridge;

namespace {

class ThresholdRunner final : public MLModelRunner {
public:
  explicit ThresholdRunner(long Limit) : Limit(Limit) {}
  std::string describe() const override { return "threshold"; }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &, Deadline) override {
    Expected<int> Size = Advice(Features.tensors()).get<int>("callee_size");
    if (!Size)
      return Size.takeError();
    Reply.clear();
    Reply.set("out", *Size < Limit);
    return Advice(Reply.tensors());
  }

private:
  long Limit;
  FeatureSet Reply; // A member, because the advice refers to it.
};

} // namespace

int main(int argc, char **argv) {
  RunnerFactory Factory;
  Factory.add({"threshold", "threshold:LIMIT  inline callees below LIMIT",
               [](const ModelSpec &Spec, const RunnerFactory &)
                   -> Expected<std::unique_ptr<MLModelRunner>> {
                 char *End = nullptr;
                 long Limit = std::strtol(Spec.Path.c_str(), &End, 10);
                 if (End == Spec.Path.c_str() || *End != 0)
                   return Error(ErrorCode::InvalidArgument,
                                "expected a number, found '" + Spec.Path + "'");
                 return std::make_unique<ThresholdRunner>(Limit);
               }});
  auto Runner = Factory.create(argc > 1 ? argv[1] : "threshold:100");
  if (!Runner)
    return std::fprintf(stderr, "%s\n", Runner.takeError().str().c_str()), 1;
  (*Runner)->populateFeatures(std::pair{"callee_size", 12});
  std::printf("inline? %s\n", (*Runner)->evaluate<bool>() ? "yes" : "no");
}
