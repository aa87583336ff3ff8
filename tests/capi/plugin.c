//===- plugin.c - A plug-in in C that uses every runner -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Uses each kind of runner. The first argument is a log to write. Each other
/// argument is the spec of an echo model, which gets a tensor of every type.
/// The plug-in also uses the runners "none", "record" and "fallback", a runner
/// of its own, and an environment. It returns the number of failed checks.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>
#include <string.h>

static int Failures;

/// Returns \p Condition. If it is false, counts and prints a failure.
static bool check(bool Condition, const char *What, const char *Where) {
  if (!Condition) {
    fprintf(stderr, "plugin: %s: expected %s; last message: %s\n", Where, What,
            mlbridgeGetLastErrorMessage());
    ++Failures;
  }
  return Condition;
}
#define CHECK(CONDITION, WHERE) check((CONDITION), #CONDITION, (WHERE))
#define SUCCEEDS(CALL, WHERE)                                                  \
  check((CALL) == MLBridgeStatusSuccess, #CALL, (WHERE))

static void sendEveryType(MLBridgeModelRunnerRef Runner, const char *Spec) {
  static const float Matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  static const int64_t Extents[] = {2, 3};
  static const bool Mask[] = {true, false, true};
  static const char *Passes[] = {"sroa", "gvn", ""};
  static const double Weights[] = {0.1, -0.0};
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Runner);
  mlbridgeSetInt8(Features, "int8", INT8_MIN);
  mlbridgeSetInt16(Features, "int16", INT16_MIN);
  mlbridgeSetInt32(Features, "int32", INT32_MIN);
  mlbridgeSetInt64(Features, "int64", INT64_MIN);
  mlbridgeSetUInt8(Features, "uint8", UINT8_MAX);
  mlbridgeSetUInt16(Features, "uint16", UINT16_MAX);
  mlbridgeSetUInt32(Features, "uint32", UINT32_MAX);
  mlbridgeSetUInt64(Features, "uint64", UINT64_MAX);
  mlbridgeSetFloat(Features, "float", 0.5f);
  mlbridgeSetDouble(Features, "double", 0.1);
  mlbridgeSetBool(Features, "bool", true);
  mlbridgeSetString(Features, "string", "main");
  mlbridgeSetStringVector(Features, "passes", Passes, NULL, 3);
  mlbridgeSetBoolVector(Features, "mask", Mask, 3);
  mlbridgeBorrowDoubleVector(Features, "weights", Weights, 2);
  mlbridgeBorrowTensor(Features, "matrix", MLBridgeElementFloat, Matrix,
                       Extents, 2);

  MLBridgeAdviceRef Advice;
  if (!SUCCEEDS(mlbridgeEvaluate(Runner, &Advice), Spec))
    return;
  CHECK(mlbridgeGetNumTensors(Advice) == 16, Spec);
  int8_t Int8 = 0;
  int64_t Int64 = 0;
  uint64_t UInt64 = 0;
  float Float = 0;
  double Double = 0;
  bool Bool = false;
  SUCCEEDS(mlbridgeGetInt8(Advice, "int8", &Int8), Spec);
  SUCCEEDS(mlbridgeGetInt64(Advice, "int64", &Int64), Spec);
  SUCCEEDS(mlbridgeGetUInt64(Advice, "uint64", &UInt64), Spec);
  SUCCEEDS(mlbridgeGetFloat(Advice, "float", &Float), Spec);
  SUCCEEDS(mlbridgeGetDouble(Advice, "double", &Double), Spec);
  SUCCEEDS(mlbridgeGetBool(Advice, "bool", &Bool), Spec);
  CHECK(Int8 == INT8_MIN && Int64 == INT64_MIN && UInt64 == UINT64_MAX, Spec);
  CHECK(Float == 0.5f && Double == 0.1 && Bool, Spec);
  CHECK(mlbridgeGetInt8(Advice, "uint8", &Int8) == MLBridgeStatusSchemaMismatch,
        Spec);

  const char *Text = "";
  const char *const *Texts = NULL;
  const float *Floats = NULL;
  const bool *Bools = NULL;
  const double *Doubles = NULL;
  size_t Count = 0;
  SUCCEEDS(mlbridgeGetString(Advice, "string", &Text, NULL), Spec);
  CHECK(strcmp(Text, "main") == 0, Spec);
  if (SUCCEEDS(mlbridgeGetStringVector(Advice, "passes", &Texts, &Count), Spec))
    CHECK(Count == 3 && strcmp(Texts[1], "gvn") == 0 && !*Texts[2], Spec);
  if (SUCCEEDS(mlbridgeGetBoolVector(Advice, "mask", &Bools, &Count), Spec))
    CHECK(Count == 3 && Bools[0] && !Bools[1] && Bools[2], Spec);
  // The matrix is converted to double, but float elements are read without a
  // copy.
  if (SUCCEEDS(mlbridgeGetDoubleVector(Advice, "matrix", &Doubles, &Count),
               Spec))
    CHECK(Count == 6 && Doubles[5] == 6, Spec);
  if (SUCCEEDS(mlbridgeGetFloatVector(Advice, "matrix", &Floats, &Count), Spec))
    CHECK(Count == 6 && memcmp(Floats, Matrix, sizeof(Matrix)) == 0, Spec);
  MLBridgeTensor Tensor;
  if (SUCCEEDS(mlbridgeGetTensor(Advice, "matrix", &Tensor), Spec))
    CHECK(Tensor.Rank == 2 && Tensor.Extents[1] == 3, Spec);
}

static void useServedModel(const char *Spec) {
  MLBridgeModelRunnerRef Runner;
  if (!SUCCEEDS(mlbridgeCreateModelRunner(Spec, &Runner), Spec))
    return;
  for (int Round = 0; Round < 3; ++Round)
    sendEveryType(Runner, Spec);
  mlbridgeSetString(mlbridgeGetFeatures(Runner), "control", "defer");
  bool Reply;
  CHECK(mlbridgeEvaluateBool(Runner, &Reply) == MLBridgeStatusDeferred, Spec);
  mlbridgeSetString(mlbridgeGetFeatures(Runner), "control", "fail");
  CHECK(mlbridgeEvaluateBool(Runner, &Reply) == MLBridgeStatusModel, Spec);
  mlbridgeDisposeModelRunner(Runner);
}

static void useInProcessModel(const char *Spec) {
  MLBridgeModelRunnerRef Runner;
  if (!SUCCEEDS(mlbridgeCreateModelRunner(Spec, &Runner), Spec))
    return;
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Runner);
  for (int Round = 0; Round < 3; ++Round) {
    float Reply = 0;
    mlbridgeSetFloat(Features, "x", (float)Round);
    if (SUCCEEDS(mlbridgeEvaluateFloat(Runner, &Reply), Spec))
      CHECK(Reply == (float)Round + 1, Spec);
  }
  bool Reply;
  mlbridgeSetString(Features, "x", "no number");
  CHECK(mlbridgeEvaluateBool(Runner, &Reply) == MLBridgeStatusSchemaMismatch,
        Spec);
  CHECK(mlbridgeEvaluateBool(Runner, &Reply) == MLBridgeStatusSchemaMismatch,
        Spec);
  mlbridgeDisposeModelRunner(Runner);
}

//===----------------------------------------------------------------------===//
// Without a model
//===----------------------------------------------------------------------===//

static void useNoModel(const char *Log) {
  char Spec[4096];
  snprintf(Spec, sizeof(Spec), "record:%s|fallback|none", Log);
  MLBridgeModelRunnerRef Runner;
  if (!SUCCEEDS(mlbridgeCreateModelRunner(Spec, &Runner), Spec))
    return;
  SUCCEEDS(mlbridgeSwitchContext(Runner, "x.c"), Spec);
  for (int Round = 0; Round < 3; ++Round) {
    bool Reply;
    const double Reward = Round;
    mlbridgeSetInt32(mlbridgeGetFeatures(Runner), "size", Round);
    CHECK(mlbridgeEvaluateBool(Runner, &Reply) == MLBridgeStatusDeferred, Spec);
    mlbridgeSetBool(mlbridgeGetDecision(Runner), "inline", Round == 0);
    SUCCEEDS(mlbridgeLogOutcome(Runner, &Reward), Spec);
  }
  const char *Text = "";
  SUCCEEDS(mlbridgeDescribeModelRunner(Runner, &Text), Spec);
  CHECK(strstr(Text, "none") != NULL, Spec);
  mlbridgeDisposeModelRunner(Runner);

  CHECK(mlbridgeCheckModelSpec("nonsense:x") == MLBridgeStatusInvalidArgument,
        "nonsense");
}

//===----------------------------------------------------------------------===//
// An environment, and a runner that acts in it
//===----------------------------------------------------------------------===//

typedef struct {
  int32_t Registers;
  double Reward;
} Allocation;

static MLBridgeStatus resetAllocation(void *User,
                                      MLBridgeEnvironmentRef Environment,
                                      MLBridgeFeatureSetRef Observation) {
  Allocation *Self = User;
  Self->Registers = 4;
  Self->Reward = 0;
  mlbridgeSetInfo(Environment, "{}");
  return mlbridgeSetInt32(Observation, "registers", Self->Registers);
}

static MLBridgeStatus stepAllocation(void *User,
                                     MLBridgeEnvironmentRef Environment,
                                     MLBridgeAdviceRef Action,
                                     MLBridgeFeatureSetRef Observation) {
  Allocation *Self = User;
  int32_t Taken;
  MLBridgeStatus Status = mlbridgeGetInt32(Action, "take", &Taken);
  if (Status != MLBridgeStatusSuccess)
    return Status;
  if (Taken > Self->Registers)
    return mlbridgeFail(MLBridgeStatusInvalidArgument, "out of registers");
  Self->Registers -= Taken;
  Self->Reward = Taken;
  if (Self->Registers == 0)
    mlbridgeSetDone(Environment);
  return mlbridgeSetInt32(Observation, "registers", Self->Registers);
}

static double rewardOfAllocation(void *User) {
  return ((Allocation *)User)->Reward;
}

static MLBridgeStatus takeHalf(void *Runner, MLBridgeAdviceRef Request,
                               int64_t Nanoseconds,
                               MLBridgeFeatureSetRef Reply) {
  (void)Nanoseconds;
  int32_t Registers;
  MLBridgeStatus Status = mlbridgeGetInt32(Request, "registers", &Registers);
  if (Status != MLBridgeStatusSuccess)
    return Status;
  ++*(int *)Runner;
  return mlbridgeSetInt32(Reply, "take", (Registers + 1) / 2);
}

static void playInC(void) {
  const char *Where = "an environment and a runner in C";
  int Asked = 0;
  Allocation State;
  MLBridgeRunnerFactoryRef Factory;
  MLBridgeModelRunnerRef Runner;
  MLBridgeEnvironmentRef Environment;
  const MLBridgeRunnerCallbacks Half = {sizeof(Half), NULL, takeHalf, NULL};
  const MLBridgeEnvironmentCallbacks Allocator = {
      sizeof(Allocator), resetAllocation, stepAllocation, rewardOfAllocation};
  if (!SUCCEEDS(mlbridgeCreateRunnerFactory(&Factory), Where))
    return;
  SUCCEEDS(mlbridgeAddScheme(Factory, "half", NULL, &Half, &Asked), Where);
  if (SUCCEEDS(mlbridgeCreateModelRunnerWithFactory(Factory, "half", &Runner),
               Where)) {
    if (SUCCEEDS(mlbridgeCreateEnvironment(&Allocator, &State, &Environment),
                 Where)) {
      const MLBridgeAgent Agent = {NULL, Runner};
      double Return = 0;
      SUCCEEDS(mlbridgeRunEpisode(Environment, &Agent, 1, 100, &Return), Where);
      CHECK(Return == 4 && Asked == 3, Where);
      CHECK(mlbridgeServeEnvironment(Environment,
                                     "pipe:/nowhere/at/all?connect=10ms") ==
                MLBridgeStatusTimeout,
            Where);
      mlbridgeDisposeEnvironment(Environment);
    }
    mlbridgeDisposeModelRunner(Runner);
  }
  mlbridgeDisposeRunnerFactory(Factory);
}

// The host finds the function by this name.
// NOLINTNEXTLINE(misc-use-internal-linkage)
__attribute__((visibility("default"))) int pluginMain(int argc, char **argv) {
  if (argc < 2)
    return 1;
  useNoModel(argv[1]);
  playInC();
  for (int I = 2; I < argc; ++I)
    if (strncmp(argv[I], "onnx:", 5) == 0)
      useInProcessModel(argv[I]);
    else
      useServedModel(argv[I]);
  printf("plugin: %d failures with %s\n", Failures, mlbridgeGetVersion());
  return Failures;
}
