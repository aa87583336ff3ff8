//===- CArgumentsTest.cpp - Null arguments of the C API -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Calls each function of the C API with each of its pointers null in turn.
/// Each call must return InvalidArgument with a message that names the pointer.
/// No call may crash.
///
//===----------------------------------------------------------------------===//

#include "capi/CAPITest.h"

#include <fstream>
#include <set>

using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

struct NullCase {
  const char *Function;
  /// The parameter that the message must name.
  const char *Parameter;
  std::function<MLBridgeStatus()> Call;
};

#define NULL_CASE(FUNCTION, PARAMETER, ...)                                    \
  NullCase {                                                                   \
    #FUNCTION, PARAMETER, [=] { return FUNCTION(__VA_ARGS__); }                \
  }

class CArgumentsTest : public testing::Test {
protected:
  CArgumentsTest() {
    MLBridgeRunnerFactoryRef MadeFactory = nullptr;
    EXPECT_EQ(mlbridgeCreateRunnerFactory(&MadeFactory), MLBridgeStatusSuccess);
    Schemes.reset(MadeFactory);
    MLBridgeEnvironmentCallbacks Callbacks = {};
    Callbacks.Size = sizeof(Callbacks);
    Callbacks.Reset = [](auto...) { return MLBridgeStatusSuccess; };
    Callbacks.Step = [](auto...) { return MLBridgeStatusSuccess; };
    MLBridgeEnvironmentRef MadeEnv = nullptr;
    EXPECT_EQ(mlbridgeCreateEnvironment(&Callbacks, nullptr, &MadeEnv),
              MLBridgeStatusSuccess);
    Env.reset(MadeEnv);
    mlbridgeSetInt32(mlbridgeGetFeatures(Model.get()), "x", 1);
    EXPECT_EQ(mlbridgeEvaluate(Model.get(), &Advice), MLBridgeStatusSuccess);
  }

  std::vector<NullCase> cases() {
    MLBridgeModelRunnerRef R = Model.get();
    MLBridgeFeatureSetRef F = mlbridgeGetFeatures(R);
    MLBridgeAdviceRef A = Advice;
    MLBridgeEnvironmentRef E = Env.get();
    MLBridgeRunnerFactoryRef S = Schemes.get();
    static const double Number = 0;
    static const int64_t Extent = 1;
    static const char *Text = "text", *const * Texts;
    static const void *Values;
    static void *Room[4];
    static double Place;
    static size_t Count;
    static int64_t Time;
    static bool Flag;
    static MLBridgeTensor Tensor;
    static MLBridgeModelRunnerRef RunnerOut;
    static MLBridgeRunnerCallbacks Incomplete = {
        sizeof(MLBridgeRunnerCallbacks), nullptr, nullptr, nullptr};
    constexpr auto D = MLBridgeElementDouble;
    return {
        NULL_CASE(mlbridgeSetScalar, "Features", nullptr, "x", D, &Number),
        NULL_CASE(mlbridgeSetScalar, "Name", F, nullptr, D, &Number),
        NULL_CASE(mlbridgeSetScalar, "null pointer", F, "x", D, nullptr),
        NULL_CASE(mlbridgeSetTensor, "Features", nullptr, "x", D, &Number,
                  &Extent, 1),
        NULL_CASE(mlbridgeSetTensor, "Name", F, nullptr, D, &Number, &Extent,
                  1),
        NULL_CASE(mlbridgeSetTensor, "null pointer", F, "x", D, nullptr,
                  &Extent, 1),
        NULL_CASE(mlbridgeSetTensor, "Extents", F, "x", D, &Number, nullptr, 1),
        NULL_CASE(mlbridgeBorrowTensor, "Features", nullptr, "x", D, &Number,
                  &Extent, 1),
        NULL_CASE(mlbridgeBorrowTensor, "Name", F, nullptr, D, &Number, &Extent,
                  1),
        NULL_CASE(mlbridgeBorrowTensor, "null pointer", F, "x", D, nullptr,
                  &Extent, 1),
        NULL_CASE(mlbridgeBorrowTensor, "Extents", F, "x", D, &Number, nullptr,
                  1),
        NULL_CASE(mlbridgeSetString, "Features", nullptr, "x", "y"),
        NULL_CASE(mlbridgeSetString, "Name", F, nullptr, "y"),
        NULL_CASE(mlbridgeSetString, "Text", F, "x", nullptr),
        NULL_CASE(mlbridgeSetStringWithLength, "Features", nullptr, "x", "y",
                  1),
        NULL_CASE(mlbridgeSetStringWithLength, "Name", F, nullptr, "y", 1),
        NULL_CASE(mlbridgeSetStringWithLength, "Text", F, "x", nullptr, 1),
        NULL_CASE(mlbridgeSetStringVector, "Features", nullptr, "x", &Text,
                  nullptr, 1),
        NULL_CASE(mlbridgeSetStringVector, "Name", F, nullptr, &Text, nullptr,
                  1),
        NULL_CASE(mlbridgeSetStringVector, "Texts", F, "x", nullptr, nullptr,
                  1),
        NULL_CASE(mlbridgeSetStringVector, "string 0", F, "x",
                  (const char *const *)Room, nullptr, 1),
        NULL_CASE(mlbridgeCopyTensor, "Features", nullptr, "x", A, nullptr),
        NULL_CASE(mlbridgeCopyTensor, "Name", F, nullptr, A, nullptr),
        NULL_CASE(mlbridgeCopyTensor, "From", F, "x", nullptr, nullptr),
        NULL_CASE(mlbridgeClearFeatures, "Features", nullptr),
        NULL_CASE(mlbridgeGetTensorAt, "Advice", nullptr, 0, &Tensor),
        NULL_CASE(mlbridgeGetTensorAt, "Tensor", A, 0, nullptr),
        NULL_CASE(mlbridgeGetTensor, "Advice", nullptr, nullptr, &Tensor),
        NULL_CASE(mlbridgeGetTensor, "Tensor", A, nullptr, nullptr),
        NULL_CASE(mlbridgeGetScalar, "Advice", nullptr, nullptr, D, &Place),
        NULL_CASE(mlbridgeGetScalar, "Value", A, nullptr, D, nullptr),
        NULL_CASE(mlbridgeGetVector, "Advice", nullptr, nullptr, D, &Values,
                  &Count),
        NULL_CASE(mlbridgeGetVector, "Values", A, nullptr, D, nullptr, &Count),
        NULL_CASE(mlbridgeGetVector, "Count", A, nullptr, D, &Values, nullptr),
        NULL_CASE(mlbridgeGetString, "Advice", nullptr, nullptr, &Text,
                  nullptr),
        NULL_CASE(mlbridgeGetString, "Text", A, nullptr, nullptr, nullptr),
        NULL_CASE(mlbridgeGetStringVector, "Advice", nullptr, nullptr, &Texts,
                  &Count),
        NULL_CASE(mlbridgeGetStringVector, "Texts", A, nullptr, nullptr,
                  &Count),
        NULL_CASE(mlbridgeGetStringVector, "Count", A, nullptr, &Texts,
                  nullptr),
        NULL_CASE(mlbridgeCreateModelRunner, "Spec", nullptr, &RunnerOut),
        NULL_CASE(mlbridgeCreateModelRunner, "Runner", "none", nullptr),
        NULL_CASE(mlbridgeCreateModelRunnerAt, "Scheme", nullptr, "", nullptr,
                  &RunnerOut),
        NULL_CASE(mlbridgeCreateModelRunnerAt, "Path", "none", nullptr, nullptr,
                  &RunnerOut),
        NULL_CASE(mlbridgeCreateModelRunnerAt, "Runner", "none", "", nullptr,
                  nullptr),
        NULL_CASE(mlbridgeCheckModelSpec, "Spec", nullptr),
        NULL_CASE(mlbridgeEvaluateAs, "Runner", nullptr, MLBridgeFormAny, D,
                  (MLBridgeAdviceRef *)Room),
        NULL_CASE(mlbridgeSetTimeout, "Runner", nullptr, 1),
        NULL_CASE(mlbridgeGetTimeout, "Runner", nullptr, &Time),
        NULL_CASE(mlbridgeGetTimeout, "Nanoseconds", R, nullptr),
        NULL_CASE(mlbridgeLogOutcome, "Runner", nullptr, &Number),
        NULL_CASE(mlbridgeFlush, "Runner", nullptr),
        NULL_CASE(mlbridgeSwitchContext, "Runner", nullptr, "x"),
        NULL_CASE(mlbridgeSwitchContext, "Name", R, nullptr),
        NULL_CASE(mlbridgeDescribeModelRunner, "Runner", nullptr, &Text),
        NULL_CASE(mlbridgeDescribeModelRunner, "Text", R, nullptr),
        NULL_CASE(mlbridgeCreateRunnerFactory, "Factory", nullptr),
        NULL_CASE(mlbridgeAddBuiltinModel, "Factory", nullptr,
                  (const MLBridgeAOTModel *)Room),
        NULL_CASE(mlbridgeAddBuiltinModel, "Model", S, nullptr),
        NULL_CASE(mlbridgeAddScheme, "Factory", nullptr, "x", nullptr,
                  &Incomplete, nullptr),
        NULL_CASE(mlbridgeAddScheme, "Name", S, nullptr, nullptr, &Incomplete,
                  nullptr),
        NULL_CASE(mlbridgeAddScheme, "Callbacks", S, "x", nullptr, nullptr,
                  nullptr),
        NULL_CASE(mlbridgeAddScheme, "Callbacks->Evaluate", S, "x", nullptr,
                  &Incomplete, nullptr),
        NULL_CASE(mlbridgeGetSchemeAt, "Factory", nullptr, 0, &Text, nullptr),
        NULL_CASE(mlbridgeSetConnectTimeout, "Factory", nullptr, 1),
        NULL_CASE(mlbridgeCreateModelRunnerWithFactory, "Factory", nullptr,
                  "none", &RunnerOut),
        NULL_CASE(mlbridgeCreateModelRunnerWithFactory, "Spec", S, nullptr,
                  &RunnerOut),
        NULL_CASE(mlbridgeCreateModelRunnerWithFactory, "Runner", S, "none",
                  nullptr),
        NULL_CASE(mlbridgeCheckModelSpecWithFactory, "Factory", nullptr,
                  "none"),
        NULL_CASE(mlbridgeCheckModelSpecWithFactory, "Spec", S, nullptr),
        NULL_CASE(mlbridgeCreateEnvironment, "Callbacks", nullptr, nullptr,
                  (MLBridgeEnvironmentRef *)Room),
        NULL_CASE(mlbridgeSetDone, "Environment", nullptr),
        NULL_CASE(mlbridgeSetTruncated, "Environment", nullptr),
        NULL_CASE(mlbridgeSetNextAgent, "Environment", nullptr, "x"),
        NULL_CASE(mlbridgeSetNextAgent, "Label", E, nullptr),
        NULL_CASE(mlbridgeGetNextAgent, "Environment", nullptr, &Text),
        NULL_CASE(mlbridgeGetNextAgent, "Label", E, nullptr),
        NULL_CASE(mlbridgeSetInfo, "Environment", nullptr, "x"),
        NULL_CASE(mlbridgeSetInfo, "JSON", E, nullptr),
        NULL_CASE(mlbridgeGetSeed, "Environment", nullptr, &Flag, &Time),
        NULL_CASE(mlbridgeGetSeed, "HasSeed", E, nullptr, &Time),
        NULL_CASE(mlbridgeGetSeed, "Seed", E, &Flag, nullptr),
        NULL_CASE(mlbridgeGetOptions, "Environment", nullptr, &Text),
        NULL_CASE(mlbridgeGetOptions, "JSON", E, nullptr),
        NULL_CASE(mlbridgeRunEpisode, "Environment", nullptr, nullptr, 0, 1,
                  nullptr),
        NULL_CASE(mlbridgeRunEpisode, "Agents", E, nullptr, 1, 1, nullptr),
        NULL_CASE(mlbridgeServeEnvironment, "Environment", nullptr, "pipe:x"),
        NULL_CASE(mlbridgeServeEnvironment, "Spec", E, nullptr),
        NULL_CASE(mlbridgeEvaluate, "Runner", nullptr,
                  (MLBridgeAdviceRef *)Room),
        // These calls come last, because they invalidate the advice that other
        // calls use.
        NULL_CASE(mlbridgeEvaluateAs, "Advice", R, MLBridgeFormAny, D, nullptr),
        NULL_CASE(mlbridgeEvaluate, "Advice", R, nullptr),
    };
  }

  ReplyFunction Echo = echo;
  RunnerHandle Model = makeRunner(Echo);
  EnvironmentHandle Env;
  FactoryHandle Schemes;
  MLBridgeAdviceRef Advice = nullptr;
};

TEST_F(CArgumentsTest, NullIsAnInvalidArgumentThatIsNamed) {
  for (const NullCase &Case : cases()) {
    SCOPED_TRACE(std::string(Case.Function) + ": " + Case.Parameter);
    // An earlier case may have failed to set a feature. Clear this failure.
    mlbridgeClearFeatures(mlbridgeGetFeatures(Model.get()));
    EXPECT_EQ(Case.Call(), MLBridgeStatusInvalidArgument);
    EXPECT_THAT(lastMessage(), HasSubstr(Case.Parameter));
  }
}

TEST_F(CArgumentsTest, NullWithoutAStatusReturnsADefault) {
  EXPECT_EQ(mlbridgeGetFeatures(nullptr), nullptr);
  EXPECT_EQ(mlbridgeGetDecision(nullptr), nullptr);
  EXPECT_EQ(mlbridgeGetNumTensors(nullptr), 0U);
  EXPECT_EQ(mlbridgeGetNumSchemes(nullptr), 0U);
  EXPECT_FALSE(mlbridgeCheckDone(nullptr));
  mlbridgeDisposeModelRunner(nullptr);
  mlbridgeDisposeRunnerFactory(nullptr);
  mlbridgeDisposeEnvironment(nullptr);
}

TEST_F(CArgumentsTest, NoFunctionIsMissingHere) {
  // These functions have no pointers, accept null, or are in the test above.
  std::set<std::string> Tested = {"mlbridgeGetVersion",
                                  "mlbridgeGetStatusName",
                                  "mlbridgeGetLastErrorMessage",
                                  "mlbridgeFail",
                                  "mlbridgeGetFeatures",
                                  "mlbridgeGetDecision",
                                  "mlbridgeGetNumTensors",
                                  "mlbridgeGetNumSchemes",
                                  "mlbridgeCheckDone",
                                  "mlbridgeDisposeModelRunner",
                                  "mlbridgeDisposeRunnerFactory",
                                  "mlbridgeDisposeEnvironment"};
  for (const NullCase &Case : cases())
    Tested.insert(Case.Function);
  std::ifstream Symbols(MLBRIDGE_SYMBOLS);
  std::set<std::string> Exported{std::istream_iterator<std::string>(Symbols),
                                 std::istream_iterator<std::string>()};
  EXPECT_EQ(Tested, Exported);
}

} // namespace
