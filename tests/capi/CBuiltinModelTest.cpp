//===- CBuiltinModelTest.cpp - Linked models in the C API -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests mlbridgeAddBuiltinModel() with descriptors like those that `mlbridge
/// compile` writes. tests/packaging/c links a compiled model into a C program.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/AOTModel.h"
#include "capi/CAPITest.h"
#include "support/AllocationCounter.h"

using namespace MLBridge::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

int supported() { return 1; }

int measure(const int64_t *, int64_t *, uint64_t *WorkspaceBytes) {
  *WorkspaceBytes = 0;
  return MLBRIDGE_AOT_OK;
}

template <int Limit>
int isBelow(const int64_t *, const void *const *Inputs, void *const *Outputs,
            void *) {
  *static_cast<bool *>(Outputs[0]) =
      *static_cast<const int32_t *>(Inputs[0]) < Limit;
  return MLBRIDGE_AOT_OK;
}

constexpr MLBridgeAOTTensor Size = {"size", MLBRIDGE_AOT_INT32, 0, nullptr};
constexpr MLBridgeAOTTensor Inline = {"inline", MLBRIDGE_AOT_BOOL, 0, nullptr};

template <int Limit>
constexpr MLBridgeAOTVariant Variant = {"baseline", supported, isBelow<Limit>};

/// Returns a model that replies whether the feature `size` is below Limit.
template <int Limit> MLBridgeAOTModel model(const char *Name) {
  MLBridgeAOTModel Model = {};
  Model.magic = MLBRIDGE_AOT_MAGIC;
  Model.abi = MLBRIDGE_AOT_ABI;
  Model.name = Name;
  Model.num_inputs = Model.num_outputs = Model.num_variants = 1;
  Model.inputs = &Size;
  Model.outputs = &Inline;
  Model.variants = &Variant<Limit>;
  Model.measure = measure;
  return Model;
}

class CBuiltinModelTest : public testing::Test {
protected:
  CBuiltinModelTest() {
    MLBridgeRunnerFactoryRef Made = nullptr;
    EXPECT_EQ(mlbridgeCreateRunnerFactory(&Made), MLBridgeStatusSuccess);
    Factory.reset(Made);
  }

  MLBridgeStatus add(const MLBridgeAOTModel &Model) {
    return mlbridgeAddBuiltinModel(Factory.get(), &Model);
  }
  MLBridgeStatus create(const char *Spec, RunnerHandle &Out) {
    MLBridgeModelRunnerRef Made = nullptr;
    MLBridgeStatus Status =
        mlbridgeCreateModelRunnerWithFactory(Factory.get(), Spec, &Made);
    Out.reset(Made);
    return Status;
  }
  /// Returns the reply of the model \p Spec for the size 12.
  bool decide(const char *Spec) {
    RunnerHandle Runner;
    EXPECT_EQ(create(Spec, Runner), MLBridgeStatusSuccess) << lastMessage();
    bool Reply = false;
    mlbridgeSetInt32(mlbridgeGetFeatures(Runner.get()), "size", 12);
    EXPECT_EQ(mlbridgeEvaluateBool(Runner.get(), &Reply), MLBridgeStatusSuccess)
        << lastMessage();
    return Reply;
  }

  FactoryHandle Factory;
  MLBridgeAOTModel Below5 = model<5>("below5");
  MLBridgeAOTModel Below100 = model<100>("below100");
};

TEST_F(CBuiltinModelTest, ASpecNamesEachModel) {
  ASSERT_EQ(add(Below5), MLBridgeStatusSuccess) << lastMessage();
  RunnerHandle Early;
  ASSERT_EQ(create("builtin:below5", Early), MLBridgeStatusSuccess);
  ASSERT_EQ(add(Below100), MLBridgeStatusSuccess) << lastMessage();
  EXPECT_FALSE(decide("builtin:below5"));
  EXPECT_TRUE(decide("fallback|builtin:below100?cpu=baseline"));
  RunnerHandle Unknown;
  EXPECT_EQ(create("builtin:below7", Unknown), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("contains below5, below100"));
  // A runner outlives the factory and ignores models that were added later.
  Factory.reset();
  bool Reply = true;
  mlbridgeSetInt32(mlbridgeGetFeatures(Early.get()), "size", 12);
  ASSERT_EQ(mlbridgeEvaluateBool(Early.get(), &Reply), MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_FALSE(Reply);
}

TEST_F(CBuiltinModelTest, WithoutModelsTheMessageNamesTheNextStep) {
  RunnerHandle Runner;
  EXPECT_EQ(create("builtin:below5", Runner), MLBridgeStatusUnsupported);
  EXPECT_THAT(lastMessage(), HasSubstr("docs/guides/compile.md"));
}

TEST_F(CBuiltinModelTest, ANameOccursOnlyOnce) {
  const MLBridgeAOTModel Other = model<100>("below5");
  ASSERT_EQ(add(Below5), MLBridgeStatusSuccess);
  for (const MLBridgeAOTModel &Again : {Other, Below5}) {
    EXPECT_EQ(add(Again), MLBridgeStatusInvalidArgument);
    EXPECT_EQ(lastMessage(),
              "expected each builtin model once, found 'below5' again");
  }
  EXPECT_FALSE(decide("builtin:below5")) << "the first model stays";
}

TEST_F(CBuiltinModelTest, InvalidDescriptorsAreRefused) {
  Below5.abi = MLBRIDGE_AOT_ABI + 1;
  EXPECT_EQ(add(Below5), MLBridgeStatusUnsupported);
  EXPECT_THAT(lastMessage(),
              AllOf(HasSubstr("'Model': expected ABI version 1, found 2"),
                    HasSubstr("compile the model again")));
  Below5 = model<5>(nullptr);
  EXPECT_EQ(add(Below5), MLBridgeStatusMalformed);
  Below5 = model<5>("below5");
  Below5.magic = 0;
  EXPECT_EQ(add(Below5), MLBridgeStatusMalformed);
  EXPECT_THAT(lastMessage(), HasSubstr("not written by `mlbridge compile`"));
  const MLBridgeAOTVariant Other = {"other", [] { return 0; }, isBelow<5>};
  Below5 = model<5>("below5");
  Below5.variants = &Other;
  EXPECT_EQ(add(Below5), MLBridgeStatusUnsupported);
  // No refused model was added.
  RunnerHandle Runner;
  EXPECT_EQ(create("builtin:below5", Runner), MLBridgeStatusUnsupported);
}

TEST_F(CBuiltinModelTest, ExhaustedMemoryAddsNothing) {
  if (!AllocationFailure::isPossible())
    GTEST_SKIP() << "allocations cannot fail under sanitizers";
  ASSERT_EQ(add(Below100), MLBridgeStatusSuccess);
  for (std::size_t After = 0;; ++After) {
    MLBridgeStatus Status;
    bool HasHappened;
    {
      AllocationFailure Failure(After);
      Status = add(Below5);
      HasHappened = Failure.hasHappened();
    }
    RunnerHandle Runner;
    ASSERT_EQ(create("builtin:below5", Runner) == MLBridgeStatusSuccess,
              Status == MLBridgeStatusSuccess)
        << After;
    ASSERT_EQ(create("builtin:below100", Runner), MLBridgeStatusSuccess);
    if (!HasHappened) {
      EXPECT_EQ(Status, MLBridgeStatusSuccess);
      EXPECT_GT(After, 3U);
      break;
    }
    ASSERT_EQ(Status, MLBridgeStatusSystem) << lastMessage();
  }
}

} // namespace
