//===- PartsTest.cpp - Parts of phase ordering ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests action spaces, rewards and reset options: valid input and error
/// messages. Also tests the counts and features of a small module.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/EpisodeSettings.h"
#include "PhaseOrdering/Reward.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

ActionSpace smallSpace() {
  Expected<ActionSpace> Space = ActionSpace::parse(
      R"({"name": "small", "prologue": "always-inline", "actions": [
            {"name": "a", "pipeline": "globaldce"},
            {"name": "b", "pipeline": ""}]})",
      "test");
  EXPECT_TRUE(Space) << Space.takeError().str();
  return *Space;
}

std::string problemOf(llvm::StringRef Text) {
  return ActionSpace::parse(Text, "test").takeError().str();
}

} // namespace

TEST(ActionSpace, ReadsJSON) {
  ActionSpace Space = smallSpace();
  EXPECT_EQ(Space.name(), "small");
  EXPECT_EQ(Space.prologue(), "always-inline");
  ASSERT_EQ(Space.size(), 2U);
  EXPECT_EQ(Space[0].Name, "a");
  EXPECT_EQ(Space[0].Pipeline, "globaldce");
  EXPECT_TRUE(Space.isEquivalentTo(smallSpace()));
  EXPECT_FALSE(Space.isEquivalentTo(*ActionSpace::load("oz")));
}

TEST(ActionSpace, HasThreeBuiltIn) {
  for (const char *Name : {"oz", "odg", "passes"}) {
    Expected<ActionSpace> Space = ActionSpace::load(Name);
    ASSERT_TRUE(Space) << Space.takeError().str();
    EXPECT_EQ(Space->name(), Name);
    EXPECT_THAT(Space->prologue(), HasSubstr("always-inline"));
    EXPECT_THAT(Space->description(), HasSubstr("-Oz"));
  }
}

TEST(ActionSpace, SaysWhatIsWrong) {
  EXPECT_EQ(ActionSpace::load("/nowhere.json").code(), ErrorCode::System);
  EXPECT_THAT(problemOf("[1"), HasSubstr("Malformed: action space 'test': "
                                         "expected JSON"));
  EXPECT_THAT(problemOf(std::string(300'000, '[')),
              HasSubstr("Malformed: action space 'test': expected JSON: nested "
                        "more than 16 deep"));
  EXPECT_THAT(problemOf(R"({"name": "]]]}}}[[[[[[[[[[[[[[[[[[[\"[["})"),
              HasSubstr("a list of 1 to 65535 actions"));
  EXPECT_THAT(problemOf("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(problemOf("{}"), HasSubstr("a list of 1 to 65535 actions"));
  EXPECT_THAT(problemOf(R"({"actions": []})"), HasSubstr("a list of 1 to"));
  EXPECT_THAT(problemOf(R"({"actions": [{"name": "x"}]})"),
              HasSubstr("action 0: expected an object with the strings"));
  EXPECT_THAT(
      problemOf(R"({"actions": [{"name": "x", "pipeline": "gvn,globaldce"}]})"),
      HasSubstr("InvalidArgument: action space 'test': action 0 'x': pipeline "
                "'gvn,globaldce': "));
  EXPECT_THAT(problemOf(R"({"prologue": "nothing",
                            "actions": [{"name": "x", "pipeline": ""}]})"),
              HasSubstr("prologue: pipeline 'nothing'"));
}

TEST(RewardFunction, IsAWeightedSumOfShares) {
  Expected<RewardFunction> Reward =
      RewardFunction::parse("text-size:10,mca-cycles:5");
  ASSERT_TRUE(Reward) << Reward.takeError().str();
  EXPECT_TRUE(Reward->needsObject());
  EXPECT_FALSE(Reward->needs(RewardFunction::Measure::Instructions));
  const Measurements Reference{
      .Instructions = 7, .TextSize = 100, .Cycles = 50, .WeightedCycles = 40};
  const Measurements State{
      .Instructions = 9, .TextSize = 80, .Cycles = 25, .WeightedCycles = 10};
  EXPECT_DOUBLE_EQ(Reward->value(State, Reference), -(8 + 2.5));
  EXPECT_DOUBLE_EQ(Reward->value(Reference, Reference), -15);
  // In a module without code, every share is 0.
  const Measurements Nothing{
      .Instructions = 0, .TextSize = 0, .Cycles = 0, .WeightedCycles = 0};
  EXPECT_DOUBLE_EQ(Reward->value(Nothing, Nothing), 0);
  Reward = RewardFunction::parse("weighted-cycles:2");
  EXPECT_DOUBLE_EQ(Reward->value(State, Reference), -0.5);
}

TEST(RewardFunction, HasNames) {
  EXPECT_TRUE(RewardFunction::parse("none")->isNone());
  EXPECT_FALSE(RewardFunction::parse("instructions")->needsObject());
  EXPECT_TRUE(RewardFunction::parse("weighted-cycles")->needsObject());
  EXPECT_FALSE(RewardFunction::parse("text-size:0")->isNone());
  for (const char *Wrong :
       {"", "size", "text-size:", "text-size:1x", "text-size:nan",
        "text-size,text-size", "none,text-size", "text-size:1,"})
    EXPECT_EQ(RewardFunction::parse(Wrong).code(), ErrorCode::InvalidArgument)
        << Wrong;
}

TEST(EpisodeSettings, ReadsTheOptionsOfAReset) {
  const ActionSpace Space = smallSpace();
  Expected<EpisodeSettings> Settings = EpisodeSettings::parse(
      R"({"module": "a.bc", "sequence": [1, 0], "final": "best", "steps": 3,
          "output": "o.bc"})",
      Space);
  ASSERT_TRUE(Settings) << Settings.takeError().str();
  EXPECT_EQ(Settings->Module, "a.bc");
  EXPECT_THAT(Settings->Sequence, ElementsAre(1, 0));
  EXPECT_EQ(Settings->Result, EpisodeSettings::Final::Best);
  EXPECT_EQ(Settings->Steps, 3U);
  EXPECT_EQ(Settings->Output, "o.bc");
  EXPECT_TRUE(EpisodeSettings::parse("", Space));
  for (const char *Wrong :
       {"x", "[]", R"({"module": ""})", R"({"sequence": [2]})",
        R"({"sequence": [-1]})", R"({"sequence": [0.5]})", R"({"sequence": 0})",
        R"({"steps": 0})", R"({"final": "first"})", R"({"Module": "a"})"})
    EXPECT_EQ(EpisodeSettings::parse(Wrong, Space).code(),
              ErrorCode::InvalidArgument)
        << Wrong;
  EXPECT_THAT(EpisodeSettings::parse(std::string(300'000, '['), Space)
                  .takeError()
                  .str(),
              HasSubstr("nested more than 16 deep"));
}

TEST(Observation, IsOfWhatWasAskedFor) {
  llvm::LLVMContext Context;
  llvm::SMDiagnostic Why;
  std::unique_ptr<llvm::Module> M = llvm::parseAssemblyString(R"(
      @g = global i32 1
      @h = external global i32
      declare void @outside()
      declare i32 @llvm.abs.i32(i32, i1)
      @alias = alias void (), ptr @called
      define internal i32 @inside(i32 %x) {
        %y = call i32 @llvm.abs.i32(i32 %x, i1 false)
        ret i32 %y
      }
      define void @called() {
        ret void
      }
      define i32 @f(ptr %p, i1 %c) {
      entry:
        br i1 %c, label %then, label %end
      then:
        call void @outside()
        call void %p()
        call void asm sideeffect "", ""()
        call void @alias()
        br label %end
      end:
        %z = call i32 @inside(i32 7)
        ret i32 %z
      dead:
        call void @outside()
        unreachable
      })",
                                                              Why, Context);
  ASSERT_TRUE(M) << Why.getMessage().str();
  const ModuleView Seen{EntityHistogram::of(*M), ModuleCounts::of(*M)};
  EXPECT_THAT(Seen.Counts.values(),
              ElementsAre(3, 1, 5, 1, 1, 2, 1, 1, 2, 1, 11, 1));
  EXPECT_EQ(Seen.Counts.instructions(), 11U);
  EXPECT_EQ(Seen.Histogram.instructions(), 11U);

  Expected<Observation> Features =
      Observation::create("actions,step,counts", 3, "", {});
  ASSERT_TRUE(Features) << Features.takeError().str();
  EXPECT_FALSE(Features->needsHistogram());
  FeatureSet Into;
  const ActionSequence Taken{2, 0, 2, 0};
  Features->write(Seen, Taken, Into);
  ASSERT_EQ(Into.size(), 3U);
  EXPECT_THAT(*Into.find("actions")->as<float>(),
              ElementsAre(2, 0, 2, 1, 0, 0));
  EXPECT_THAT(*Into.find("step")->as<float>(), ElementsAre(4));
  EXPECT_EQ(Observation::create("step,step", 3, "", {}).code(),
            ErrorCode::InvalidArgument);
  EXPECT_EQ(Observation::create("embedding", 3, "/nowhere", {}).code(),
            ErrorCode::System);
}
