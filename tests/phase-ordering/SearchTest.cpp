//===- SearchTest.cpp - Which sequences are tried -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A policy's answers, what is refused of them, and what a search makes of
/// them, on a module that each action changes.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Search.h"

#include "../unit/FunctionRunner.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace MLBridge;
using test::FunctionRunner;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Three actions: nothing, all of -Oz, and a little of it.
constexpr char Space[] = R"json({"name": "three", "actions": [
  {"name": "nothing", "pipeline": ""},
  {"name": "oz", "pipeline": "default<Oz>"},
  {"name": "early", "pipeline": "function(sroa,early-cse<>)"}]})json";

constexpr char Code[] = R"(
  define i32 @f(i32 %x) minsize optsize {
    %p = alloca i32
    store i32 %x, ptr %p
    %a = load i32, ptr %p
    %b = add i32 %a, %a
    store i32 %b, ptr %p
    %c = load i32, ptr %p
    %d = mul i32 %c, %c
    ret i32 %d
  })";

class SearchTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  }

  void SetUp() override {
    llvm::SMDiagnostic Why;
    std::unique_ptr<llvm::Module> M =
        llvm::parseAssemblyString(Code, Why, Context);
    ASSERT_TRUE(M) << Why.getMessage().str();
    M->setTargetTriple(llvm::Triple(llvm::sys::getDefaultTargetTriple()));
    Expected<std::unique_ptr<Program>> Made =
        Program::create(*M, Settings.Programs);
    ASSERT_TRUE(Made) << Made.takeError().str();
    Of = std::move(*Made);
  }

  /// A policy that answers \p Values to each question.
  Expected<SearchResult> find(std::vector<float> Values, SearchOptions How) {
    FunctionRunner Runner([&](const FeatureSet &, Deadline, FeatureSet &Out) {
      ++Asked;
      Out.set("values", Values);
      return Error::success();
    });
    PhaseOrderingPolicy Policy(Runner, Features, Values.size());
    return search(*Of, Policy, Settings, How);
  }

  llvm::LLVMContext Context;
  PhaseOrderingSettings Settings{
      .Programs = {.Actions = *ActionSpace::parse(Space, "test"),
                   .Reward = *RewardFunction::parse("text-size"),
                   .Histograms = std::nullopt,
                   .Verify = true,
                   .CachedStates = 100,
                   .CPU = ""},
      .Steps = 1};
  Observation Features = *Observation::create("step", 3, "", {});
  std::unique_ptr<Program> Of;
  unsigned Asked = 0;
};

} // namespace

TEST_F(SearchTest, TriesTheMostValuedActionsFirst) {
  const std::uint64_t Oz = *Of->stock()->TextSize;
  const std::uint64_t Early = *Of->state({2})->Sizes.TextSize;
  const std::uint64_t Nothing = *Of->state({0})->Sizes.TextSize;
  ASSERT_LT(Oz, Nothing);
  ASSERT_LE(Oz, Early);
  for (unsigned Rollouts : {1U, 2U, 3U, 9U}) {
    Expected<SearchResult> Found = find({3, 1, 2}, {Rollouts, 0, 0});
    ASSERT_TRUE(Found) << Found.takeError().str();
    EXPECT_EQ(Found->Rollouts, std::min(Rollouts, 3U));
    EXPECT_EQ(Found->StockTextSize, Oz);
    EXPECT_EQ(Found->TextSize, Oz);
    // None of them is smaller than -Oz.
    EXPECT_FALSE(Found->Sequence);
  }
  EXPECT_EQ(Asked, 4U);
}

TEST_F(SearchTest, DrawsTheSameSequencesByTheSameSeed) {
  Settings.Steps = 4;
  for (unsigned Seed : {0U, 1U}) {
    Expected<SearchResult> One = find({0, 0, 0}, {5, 0, Seed});
    Expected<SearchResult> Other = find({0, 0, 0}, {5, 0, Seed});
    ASSERT_TRUE(One && Other);
    EXPECT_EQ(One->Rollouts, 5U);
    EXPECT_EQ(One->TextSize, Other->TextSize);
    EXPECT_EQ(One->Sequence, Other->Sequence);
  }
  EXPECT_EQ(Asked, 4U * 5 * 4);
}

TEST_F(SearchTest, InfiniteValuesAreCertainOrNever) {
  constexpr float Infinity = std::numeric_limits<float>::infinity();
  Settings.Steps = 3;
  EXPECT_TRUE(find({-Infinity, 0, -Infinity}, {4, 0, 0}));
  EXPECT_TRUE(find({Infinity, 0, Infinity}, {4, 0, 0}));
  EXPECT_THAT(
      find({std::numeric_limits<float>::quiet_NaN(), 0, 0}, {1, 0, 0})
          .takeError()
          .str(),
      HasSubstr("SchemaMismatch: function: output 'values': expected numbers, "
                "found NaN"));
}

TEST_F(SearchTest, AnswersAreChecked) {
  FeatureSet Reply;
  FunctionRunner Runner([&](const FeatureSet &, Deadline, FeatureSet &Out) {
    for (const TensorView &Tensor : Reply.tensors())
      Out.copy(Tensor.Name, Tensor);
    return Error::success();
  });
  PhaseOrderingPolicy Policy(Runner, Features, 4);
  auto Ask = [&](std::string_view Name, auto Value) {
    Reply.clear();
    Reply.set(Name, Value);
    return Policy.ask({}, {});
  };
  EXPECT_EQ(Ask("out", std::int64_t(3))->Action, 3U);
  EXPECT_EQ(Ask("action", 2.0F)->Action, 2U);
  Expected<PhaseOrderingPolicy::Answer> Values =
      Ask("logits", std::vector<float>{1, 4, 4, 2});
  ASSERT_TRUE(Values);
  EXPECT_EQ(Values->Action, 1U);
  EXPECT_THAT(Values->Values, ElementsAre(1, 4, 4, 2));
  EXPECT_THAT(Ask("x", std::int64_t(4)).takeError().str(),
              HasSubstr("expected an action of 0 to 3, found 4"));
  EXPECT_THAT(Ask("x", std::int64_t(-1)).takeError().str(),
              HasSubstr("found -1"));
  EXPECT_EQ(Ask("x", 0.5F).code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(Ask("x", std::string("left")).code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(Ask("x", std::vector<float>{1, 2}).takeError().str(),
              HasSubstr("or 4 numbers, one for each, found float[2]"));
}
