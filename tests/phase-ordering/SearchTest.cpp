//===- SearchTest.cpp - Searching for sequences ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the replies of a policy, their errors, and the search that uses the
/// replies. In the module of these tests, actions remove functions.
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
#include <set>

using namespace MLBridge;
using test::FunctionRunner;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Each action leaves one function fewer than the action before it. Action 0
/// leaves all four functions, as -Oz must.
constexpr char Space[] = R"json({"name": "fewer", "actions": [
  {"name": "four", "pipeline": ""},
  {"name": "three",
   "pipeline": "internalize<preserve-gv=a;preserve-gv=b;preserve-gv=c>,globaldce"},
  {"name": "two",
   "pipeline": "internalize<preserve-gv=a;preserve-gv=b>,globaldce"},
  {"name": "one", "pipeline": "internalize<preserve-gv=a>,globaldce"}]})json";

constexpr char Code[] = R"(
  define i32 @a(i32 %x) minsize optsize {
    %y = mul i32 %x, 12345
    ret i32 %y
  }
  define i32 @b(i32 %x) minsize optsize {
    %y = mul i32 %x, 23456
    ret i32 %y
  }
  define i32 @c(i32 %x) minsize optsize {
    %y = mul i32 %x, 34567
    ret i32 %y
  }
  define i32 @d(i32 %x) minsize optsize {
    %p = alloca i32
    store i32 %x, ptr %p
    %y = load i32, ptr %p
    ret i32 %y
  })";

/// A function that cannot be compiled. It is dead, so a pass may remove it.
constexpr char Nonsense[] = R"(
  define internal void @bad() {
    call void asm sideeffect "nonsense", ""()
    ret void
  })";

class SearchTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  }

  void SetUp() override { load(Code); }

  void load(const std::string &Text) {
    llvm::SMDiagnostic Why;
    std::unique_ptr<llvm::Module> M =
        llvm::parseAssemblyString(Text, Why, Context);
    ASSERT_TRUE(M) << Why.getMessage().str();
    M->setTargetTriple(llvm::Triple(llvm::sys::getDefaultTargetTriple()));
    Expected<std::unique_ptr<Program>> Made =
        Program::create(*M, Settings.Programs);
    ASSERT_TRUE(Made) << Made.takeError().str();
    Of = std::move(*Made);
  }

  std::uint64_t sizeOf(const ActionSequence &Sequence) {
    Expected<Program::State> Found = Of->state(Sequence);
    EXPECT_TRUE(Found) << Found.takeError().str();
    return Found ? Found->Sizes.TextSize.value_or(0) : 0;
  }

  /// Searches with a policy that replies \p Values to each request.
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
  Observation Features = *Observation::create("step", 4, "", {});
  std::unique_ptr<Program> Of;
  unsigned Asked = 0;
};

} // namespace

TEST_F(SearchTest, EachActionMakesAnotherSizeBelowOz) {
  const std::uint64_t Stock = *Of->stock()->TextSize;
  EXPECT_GE(sizeOf({0}), Stock);
  EXPECT_LT(sizeOf({1}), Stock);
  EXPECT_LT(sizeOf({2}), sizeOf({1}));
  EXPECT_LT(sizeOf({3}), sizeOf({2}));
}

TEST_F(SearchTest, TriesTheMostValuedActionsFirst) {
  const std::uint64_t Stock = *Of->stock()->TextSize;
  auto Try = [&](unsigned Rollouts) {
    Expected<SearchResult> Found = find({4, 1, 3, 2}, {Rollouts, 0, 0});
    EXPECT_TRUE(Found) << Found.takeError().str();
    EXPECT_EQ(Found->Rollouts, std::min(Rollouts, 4U));
    EXPECT_EQ(Found->StockTextSize, Stock);
    EXPECT_EQ(Found->TextSize,
              Found->Sequence ? sizeOf(*Found->Sequence) : Stock);
    return Found->Sequence;
  };
  // Action 0 does not make the module smaller than -Oz does, so -Oz wins.
  EXPECT_EQ(Try(1), std::nullopt);
  EXPECT_EQ(Try(2), ActionSequence{2});
  EXPECT_EQ(Try(3), ActionSequence{3});
  // Action 0 is tried last. Its module is larger than the module of action 3.
  EXPECT_EQ(Try(4), ActionSequence{3});
  EXPECT_EQ(Try(9), ActionSequence{3});
  EXPECT_EQ(Asked, 5U);
  // If values are equal, the first action wins.
  EXPECT_EQ(find({0, 1, 1, 1}, {1, 0, 0})->Sequence, ActionSequence{1});
}

TEST_F(SearchTest, LooksAhead) {
  Settings.Lookahead = 3;
  Features = *Observation::create("counts", 4, "", {});
  std::vector<float> Values{0};
  FunctionRunner Runner([&](const FeatureSet &In, Deadline, FeatureSet &Out) {
    ++Asked;
    // A module with fewer functions has a higher value.
    Values[0] = -(*In.find("counts")->as<float>())[0];
    Out.set("value", Values);
    return Error::success();
  });
  PhaseOrderingPolicy Policy(Runner, Features, 4);
  auto Outcome = [&](std::uint16_t Action) { return Of->view({Action}); };
  Expected<std::uint16_t> Best = lookAhead(Outcome, 3, Policy);
  ASSERT_TRUE(Best) << Best.takeError().str();
  // Action 3 leaves fewer functions, but the look-ahead tries only the first
  // three actions.
  EXPECT_EQ(*Best, 2);
  EXPECT_EQ(Asked, 3U);

  // A search first tries the action that the look-ahead chose, then the other
  // actions in order.
  Expected<SearchResult> One = search(*Of, Policy, Settings, {.Rollouts = 1});
  ASSERT_TRUE(One) << One.takeError().str();
  EXPECT_THAT(One->Sequence, testing::Optional(ElementsAre(2)));
  Expected<SearchResult> All = search(*Of, Policy, Settings, {.Rollouts = 4});
  ASSERT_TRUE(All) << All.takeError().str();
  EXPECT_THAT(All->Sequence, testing::Optional(ElementsAre(3)));
  EXPECT_EQ(All->Rollouts, 4U);

  Values = {1, 2};
  Expected<std::uint16_t> Two = lookAhead(Outcome, 3, Policy);
  EXPECT_EQ(Two.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(Two.takeError().str(), HasSubstr("expected one number"));
}

TEST_F(SearchTest, DrawsTheSameSequencesByTheSameSeed) {
  Settings.Steps = 4;
  std::set<ActionSequence> Winners;
  for (unsigned Seed = 0; Seed < 16; ++Seed) {
    Expected<SearchResult> One = find({0, 0, 0, -2}, {2, 0, Seed});
    Expected<SearchResult> Other = find({0, 0, 0, -2}, {2, 0, Seed});
    ASSERT_TRUE(One && Other);
    EXPECT_EQ(One->Rollouts, 2U);
    EXPECT_EQ(One->TextSize, Other->TextSize);
    EXPECT_EQ(One->Sequence, Other->Sequence);
    if (!One->Sequence)
      continue;
    EXPECT_EQ(One->Sequence->size(), 4U);
    EXPECT_EQ(One->TextSize, sizeOf(*One->Sequence));
    Winners.insert(*One->Sequence);
  }
  EXPECT_GT(Winners.size(), 4U);
  EXPECT_EQ(Asked, 2U * 16 * 2 * 4);
}

TEST_F(SearchTest, InfiniteValuesAreCertainOrNever) {
  constexpr float Infinity = std::numeric_limits<float>::infinity();
  Settings.Steps = 3;
  // Other sequences are smaller, but must never be drawn.
  for (unsigned Seed = 0; Seed < 4; ++Seed) {
    Expected<SearchResult> Certain =
        find({-Infinity, -Infinity, 0, -Infinity}, {10, 0, Seed});
    ASSERT_TRUE(Certain) << Certain.takeError().str();
    EXPECT_EQ(Certain->Sequence, (ActionSequence{2, 2, 2}));
    Expected<SearchResult> Either =
        find({Infinity, 0, Infinity, 0}, {10, 0, Seed});
    ASSERT_TRUE(Either && Either->Sequence);
    EXPECT_EQ(Either->TextSize, sizeOf({2}));
  }
  EXPECT_THAT(
      find({std::numeric_limits<float>::quiet_NaN(), 0, 0, 0}, {1, 0, 0})
          .takeError()
          .str(),
      HasSubstr("SchemaMismatch: function: output 'values': expected numbers, "
                "found NaN"));
}

TEST_F(SearchTest, GoesOnAfterAFailure) {
  load(std::string(Code) + Nonsense);
  for (unsigned Steps : {1U, 2U}) {
    Settings.Steps = Steps;
    Expected<SearchResult> Found = find({4, 2, 3, 1}, {8, 0, 0});
    ASSERT_TRUE(Found) << Found.takeError().str();
    EXPECT_EQ(Found->Rollouts, Steps == 1 ? 4U : 8U);
    EXPECT_GE(Found->Failures, 1U);
    EXPECT_LT(Found->Failures, Found->Rollouts);
    ASSERT_TRUE(Found->Sequence);
    EXPECT_EQ(Found->TextSize, sizeOf(*Found->Sequence));
    EXPECT_THAT(find({4, 2, 3, 1}, {1, 0, 0}).takeError().str(),
                HasSubstr("nonsense"));
  }
}

TEST_F(SearchTest, RepliesAreChecked) {
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
  Expected<PhaseOrderingPolicy::Reply> Values =
      Ask("logits", std::vector<float>{1, 4, 4, 2});
  ASSERT_TRUE(Values);
  EXPECT_EQ(Values->Action, 1U);
  EXPECT_THAT(Values->Values, ElementsAre(1, 4, 4, 2));
  EXPECT_THAT(Ask("x", std::int64_t(4)).takeError().str(),
              HasSubstr("expected an action from 0 to 3, found 4"));
  EXPECT_THAT(Ask("x", std::int64_t(-1)).takeError().str(),
              HasSubstr("found -1"));
  EXPECT_EQ(Ask("x", 0.5F).code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(Ask("x", std::string("left")).code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(Ask("x", std::vector<float>{1, 2}).takeError().str(),
              HasSubstr("or 4 numbers, one for each, found float[2]"));
}
