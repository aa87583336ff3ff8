//===- Module.cpp - Modules as others write them ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The module MLBridge-test.so, with three schemes. `test:NUMBER` replies with
/// the number. `test+counted:` replies with the number of runners that one
/// factory and its copies have made. `test+model:FILE` replies with the number
/// of loaded models. With WRONG_VERSION, the module has another version. With
/// NO_VERSION or NO_RUNNERS, the version or AddRunners is null. With NO_SYMBOL,
/// the library is not a module.
///
//===----------------------------------------------------------------------===//

#include "FunctionModel.h"
#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Extend/RunnerModule.h"
#include "MLCompilerBridge/Training/EnvironmentServer.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace MLBridge;

namespace {

class Constant final : public MLModelRunner {
public:
  explicit Constant(int Value) : Value(Value) {}
  std::string describe() const override { return "test"; }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &, const AdviceSpec &,
                                   Deadline) override {
    Reply.set("out", Value);
    return Advice(Reply.tensors());
  }

private:
  int Value;
  FeatureSet Reply;
};

Expected<std::shared_ptr<const Model>> loadModel(const std::string &File,
                                                 const ModelSpec &) {
  static std::atomic<int> NumLoaded = 0;
  // The sleep is long enough for two threads to load at once if the second does
  // not wait.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return std::make_shared<test::FunctionModel>(
      File, std::vector<TensorSpec>{},
      std::vector<TensorSpec>{{"out", ElementType::Int32, {}}},
      [Number = ++NumLoaded](Span<const TensorView>, FeatureSet &Out) {
        Out.set("out", Number);
        return Error::success();
      });
}

[[maybe_unused]] void addRunners(RunnerFactory &Factory) {
  Factory.add(
      {"test", "test:NUMBER",
       [](const ModelSpec &Spec,
          const RunnerFactory &) -> Expected<std::unique_ptr<MLModelRunner>> {
         return std::make_unique<Constant>(std::atoi(Spec.Path.c_str()));
       }});
  auto Made = std::make_shared<std::atomic<int>>(0);
  Factory.add({"test+counted", "test+counted:",
               [Made](const ModelSpec &, const RunnerFactory &)
                   -> Expected<std::unique_ptr<MLModelRunner>> {
                 return std::make_unique<Constant>(++*Made);
               }});
  addModelFormat(Factory, {"test+model", "test+model:FILE", loadModel});
}

void addTraining(EnvironmentServer &Server) {
  Server.add(
      {"test", [](Environment &, std::string_view Spec, const SerDesFactory &) {
         return Error(ErrorCode::Model, "served at " + std::string(Spec));
       }});
}

} // namespace

#if defined(WRONG_VERSION)
extern "C" __attribute__((visibility("default")))
const RunnerModule MLBridgeRunnerModule = {"0.0.0", addRunners, addTraining};
#elif defined(NO_VERSION)
extern "C" __attribute__((visibility("default")))
const RunnerModule MLBridgeRunnerModule = {nullptr, addRunners, addTraining};
#elif defined(NO_RUNNERS)
extern "C" __attribute__((visibility("default")))
const RunnerModule MLBridgeRunnerModule = {MLBRIDGE_VERSION, nullptr,
                                           addTraining};
#elif defined(NO_SYMBOL)
extern "C" __attribute__((visibility("default")))
const RunnerModule SomethingElse = {MLBRIDGE_VERSION, addRunners, addTraining};
#else
MLBRIDGE_RUNNER_MODULE(addRunners, addTraining)
#endif
