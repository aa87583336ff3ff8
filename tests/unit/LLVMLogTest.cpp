//===- LLVMLogTest.cpp - Our logs equal LLVM's ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares the log of RecordModelRunner with the log of llvm::Logger for the
/// same observations.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "support/EchoModel.h"

#include <llvm/Analysis/TensorSpec.h>
#include <llvm/Analysis/Utils/TrainingLogger.h>
#include <llvm/Support/raw_ostream.h>

#include <gtest/gtest.h>

#include <fstream>

using namespace MLBridge;
using namespace MLBridge::test;

namespace {
struct Observation {
  std::string Context;
  std::int64_t CalleeSize;
  std::vector<float> Embedding;
  std::uint8_t Flag;
  std::int64_t Decision;
  double Reward;
};
} // namespace

const std::vector<Observation> Observations = {
    {"f", 1, {1, 2, 3, 4}, 1, 0, 0.5},
    {"f", 2, {-1, 0.25F, 1e30F, 4}, 0, 1, -1},
    {"\x01 g\t\"\\\n\r\x1F\x7F", 3, {0, 0, 0, 0}, 255, 1, 1e300},
    {"f", -4, {1, 2, 3, 4}, 10, 0, 0},
    {"h\xC3\xA4/", 5, {1, 2, 3, 4}, 10, 0, 0},
};
const char *const EmbeddingName = "an \"embedding\" \\ \xC3\xA4";

static void recordWithLLVM(const std::string &Path, bool WithReward) {
  using llvm::TensorSpec;
  std::vector<TensorSpec> Features = {
      TensorSpec::createSpec<std::int64_t>("callee_size", {1}),
      TensorSpec::createSpec<float>(EmbeddingName, {2, 2}),
      TensorSpec::createSpec<std::uint8_t>("flag", {1}),
      TensorSpec::createSpec<std::int64_t>("inlining_decision", {1}),
  };
  std::error_code Failed;
  auto Out = std::make_unique<llvm::raw_fd_ostream>(Path, Failed);
  ASSERT_FALSE(Failed) << Failed.message();
  llvm::Logger Log(std::move(Out), Features,
                   TensorSpec::createSpec<double>("reward", {1}), WithReward,
                   Features.back());
  for (const Observation &O : Observations) {
    if (O.Context != Log.currentContext())
      Log.switchContext(O.Context);
    auto Bytes = [](const auto *Data) {
      return reinterpret_cast<const char *>(Data);
    };
    Log.startObservation();
    Log.logTensorValue(0, Bytes(&O.CalleeSize));
    Log.logTensorValue(1, Bytes(O.Embedding.data()));
    Log.logTensorValue(2, Bytes(&O.Flag));
    Log.logTensorValue(3, Bytes(&O.Decision));
    Log.endObservation();
    if (WithReward)
      Log.logReward(O.Reward);
  }
}

static void recordWithOurs(const std::string &Path, bool WithReward) {
  auto Runner = createModelRunner("record:" + Path + "|none");
  ASSERT_TRUE(Runner) << Runner.message();
  for (const Observation &O : Observations) {
    (*Runner)->switchContext(O.Context);
    (*Runner)->populateFeatures(
        std::pair{"callee_size", O.CalleeSize},
        std::pair{EmbeddingName, TensorRef(O.Embedding, {2, 2})},
        std::pair{"flag", O.Flag});
    ASSERT_EQ((*Runner)->tryEvaluate<bool>().code(), ErrorCode::Deferred);
    Error E = (*Runner)->logOutcome(std::pair{"inlining_decision", O.Decision},
                                    WithReward ? std::optional(O.Reward)
                                               : std::nullopt);
    ASSERT_FALSE(E) << E.str();
  }
}

static std::string contents(const std::string &Path) {
  std::ifstream In(Path, std::ios::binary);
  return {std::istreambuf_iterator<char>(In), {}};
}

namespace {
class LLVMLog : public testing::TestWithParam<bool> {};
} // namespace

TEST_P(LLVMLog, IsTheSameByteForByte) {
  TemporaryDirectory Directory;
  std::string Theirs = Directory.path("theirs"), Ours = Directory.path("ours");
  recordWithLLVM(Theirs, GetParam());
  recordWithOurs(Ours, GetParam());
  EXPECT_GT(contents(Theirs).size(), 500U);
  EXPECT_EQ(contents(Ours), contents(Theirs));
}

INSTANTIATE_TEST_SUITE_P(, LLVMLog, testing::Bool(),
                         [](const testing::TestParamInfo<bool> &Info) {
                           return Info.param ? "WithReward" : "WithoutReward";
                         });
