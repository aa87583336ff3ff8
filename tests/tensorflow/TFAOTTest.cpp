//===- TFAOTTest.cpp - Compiled SavedModels -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the models of make_models.py, which mlbridge_add_tf_aot_model()
/// compiles. This program contains them as built-in models.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/AOTSchemes.h"
#include "linear.h"
#include "network.h"
#include "separate.h"
#include "support/AllocationCounter.h"
#include "two.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

using namespace MLBridge;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

static std::unique_ptr<MLModelRunner> runner(const char *Spec) {
  RunnerFactory Factory;
  addBuiltinModels(Factory,
                   {&mlbridge_aot_model_linear, &mlbridge_aot_model_network,
                    &mlbridge_aot_model_separate, &mlbridge_aot_model_two});
  auto Made = Factory.create(Spec);
  if (Made)
    return std::move(*Made);
  ADD_FAILURE() << Made.takeError().str();
  return nullptr;
}

static std::vector<float> readFloats(const char *Name) {
  const fs::path File = fs::path(MLBRIDGE_TEST_TF_MODELS) / Name;
  std::ifstream Stream(File, std::ios::binary);
  std::vector<float> Values(fs::file_size(File) / sizeof(float));
  Stream.read(reinterpret_cast<char *>(Values.data()),
              static_cast<std::streamsize>(Values.size() * sizeof(float)));
  return Values;
}

TEST(TFAOT, AnswersFromItsWeights) {
  auto Runner = runner("builtin:linear");
  std::vector<float> X = {1, 10, 100, 1000};
  Runner->populateFeatures(std::pair{"x", X});
  EXPECT_EQ(Runner->evaluate<float>(), 1 - 20 + 300 - 4000);
}

TEST(TFAOT, HasInputsAndOutputsByName) {
  auto Runner = runner("builtin:two");
  std::vector<float> B = {3, 5};
  Runner->populateFeatures(std::pair{"b", B}, std::pair{"a", std::int64_t(10)});
  Advice Found = Runner->evaluate<Advice>();
  auto Logits = Found.get<std::vector<float>>("logits");
  ASSERT_TRUE(Logits) << Logits.takeError().str();
  EXPECT_THAT(*Logits, ElementsAre(13, 5, 15));
  auto Twice = Found.get<int>("twice");
  ASSERT_TRUE(Twice) << Twice.takeError().str();
  EXPECT_EQ(*Twice, 20);

  auto Decider = runner("builtin:two?decide=argmax&output=logits");
  Decider->populateFeatures(std::pair{"b", B},
                            std::pair{"a", std::int64_t(10)});
  EXPECT_EQ(Decider->evaluate<int>(), 2);
}

TEST(TFAOT, AnswersAsTensorFlowDoesInPython) {
  const std::vector<float> Requests = readFloats("network/requests");
  const std::vector<float> Replies = readFloats("network/answers");
  const std::size_t Rows = Replies.size() / 15;
  ASSERT_EQ(Requests.size(), Rows * 300);
  ASSERT_GT(Rows, 0u);
  // Two threads use the model at once, each with its own buffers.
  std::vector<std::thread> Threads;
  for (int T = 0; T < 2; ++T)
    Threads.emplace_back([&] {
      auto Runner = runner("builtin:network");
      for (std::size_t Row = 0; Row < Rows; ++Row) {
        Span<const float> Request(Requests.data() + Row * 300, 300);
        Runner->populateFeatures(std::pair{"x", Request});
        auto Logits = Runner->evaluate<std::vector<float>>();
        ASSERT_EQ(Logits.size(), 15u);
        for (std::size_t I = 0; I < 15; ++I)
          EXPECT_NEAR(Logits[I], Replies[Row * 15 + I], 1e-5);
      }
    });
  for (std::thread &T : Threads)
    T.join();
}

TEST(TFAOT, CodeForACPURunsOnlyThere) {
  const MLBridgeAOTModel &Network = mlbridge_aot_model_network;
  ASSERT_EQ(Network.num_variants, 2u);
  EXPECT_STREQ(Network.variants[0].cpu, "haswell");
  EXPECT_STREQ(Network.variants[1].cpu, "baseline");
  const bool IsWide = __builtin_cpu_supports("x86-64-v3");
  EXPECT_EQ(Network.variants[0].supported(), IsWide);
  EXPECT_EQ(Network.variants[1].supported(), 1);
  EXPECT_EQ(mlbridge_aot_model_linear.num_variants, 1u);
  EXPECT_STREQ(mlbridge_aot_model_linear.variants[0].cpu, "baseline");

  const std::vector<float> Requests = readFloats("network/requests");
  const std::vector<float> Replies = readFloats("network/answers");
  for (const char *Spec :
       {"builtin:network?cpu=baseline", "builtin:network?cpu=haswell"}) {
    auto Runner = runner(Spec);
    ASSERT_TRUE(Runner);
    Runner->populateFeatures(
        std::pair{"x", Span<const float>(Requests.data(), 300)});
    auto Logits = Runner->tryEvaluate<std::vector<float>>();
    if (!IsWide && std::string_view(Spec).ends_with("haswell")) {
      ASSERT_FALSE(Logits);
      EXPECT_EQ(Logits.takeError().code(), ErrorCode::Unsupported);
      continue;
    }
    ASSERT_TRUE(Logits) << Logits.takeError().str();
    for (std::size_t I = 0; I < 15; ++I)
      EXPECT_NEAR((*Logits)[I], Replies[I], 1e-5) << Spec;
  }
}

TEST(TFAOT, AnswersWithWeightsOutsideTheCode) {
  const std::vector<float> Requests = readFloats("network/requests");
  const std::vector<float> Replies = readFloats("network/answers");
  std::vector<const char *> Specs = {"builtin:separate?cpu=baseline"};
  if (mlbridge_aot_model_separate.variants[0].supported())
    Specs.push_back("builtin:separate?cpu=haswell");
  for (const char *Spec : Specs) {
    auto Runner = runner(Spec);
    ASSERT_TRUE(Runner);
    for (std::size_t Row = 0; Row < Replies.size() / 15; ++Row) {
      Span<const float> Request(Requests.data() + Row * 300, 300);
      Runner->populateFeatures(std::pair{"x", Request});
      auto Logits = Runner->evaluate<std::vector<float>>();
      ASSERT_EQ(Logits.size(), 15u);
      for (std::size_t I = 0; I < 15; ++I)
        EXPECT_NEAR(Logits[I], Replies[Row * 15 + I], 1e-5) << Spec;
    }
  }
}

TEST(TFAOT, AllocatesNothingOnceWarm) {
  auto Runner = runner("builtin:network");
  std::vector<float> X(300, 0.5f);
  auto Ask = [&] {
    Runner->populateFeatures(std::pair{"x", Span<const float>(X)});
    auto Found = Runner->tryEvaluate<Span<const float>>();
    return Found && Found->size() == 15;
  };
  bool AllWell = true;
  EXPECT_EQ(test::allocationsOnceWarm([&] { AllWell &= Ask(); }), 0u);
  EXPECT_TRUE(AllWell);
}

TEST(TFAOT, FeaturesThatDoNotFit) {
  auto Runner = runner("builtin:linear");
  std::vector<float> Five(5);
  Runner->populateFeatures(std::pair{"x", Five});
  Expected<float> Found = Runner->tryEvaluate<float>();
  ASSERT_FALSE(Found);
  EXPECT_THAT(Found.takeError().str(), HasSubstr("SchemaMismatch"));
}
