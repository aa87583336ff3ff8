//===- layout.c - Values and layouts of the ABI ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints the constants and struct layouts that the ABI fixes. check-abi
/// compares them with layout.txt.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>

#define NUMBER(NAME) printf("%s = %d\n", #NAME, (int)(NAME))
#define SIZE(TYPE) printf("%s: %zu bytes\n", #TYPE, sizeof(TYPE))
#define FIELD(TYPE, NAME)                                                      \
  printf("%s.%s: at %zu, %zu bytes\n", #TYPE, #NAME, offsetof(TYPE, NAME),     \
         sizeof(((TYPE *)0)->NAME))

// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are intended.
int main(void) {
  NUMBER(MLBridgeStatusSuccess);
  NUMBER(MLBridgeStatusTimeout);
  NUMBER(MLBridgeStatusPeerClosed);
  NUMBER(MLBridgeStatusMalformed);
  NUMBER(MLBridgeStatusSchemaMismatch);
  NUMBER(MLBridgeStatusModel);
  NUMBER(MLBridgeStatusUnsupported);
  NUMBER(MLBridgeStatusSystem);
  NUMBER(MLBridgeStatusInvalidArgument);
  NUMBER(MLBridgeStatusDeferred);
  NUMBER(MLBridgeElementInt8);
  NUMBER(MLBridgeElementInt16);
  NUMBER(MLBridgeElementInt32);
  NUMBER(MLBridgeElementInt64);
  NUMBER(MLBridgeElementUInt8);
  NUMBER(MLBridgeElementUInt16);
  NUMBER(MLBridgeElementUInt32);
  NUMBER(MLBridgeElementUInt64);
  NUMBER(MLBridgeElementFloat);
  NUMBER(MLBridgeElementDouble);
  NUMBER(MLBridgeElementBool);
  NUMBER(MLBridgeElementString);
  NUMBER(MLBridgeFormAny);
  NUMBER(MLBridgeFormScalar);
  NUMBER(MLBridgeFormVector);
  SIZE(MLBridgeStatus);
  SIZE(MLBridgeElementType);
  SIZE(MLBridgeForm);
  SIZE(MLBridgeModelRunnerRef);
  SIZE(MLBridgeFeatureSetRef);
  SIZE(MLBridgeAdviceRef);
  SIZE(MLBridgeEnvironmentRef);
  SIZE(MLBridgeRunnerFactoryRef);
  SIZE(MLBridgeTensor);
  FIELD(MLBridgeTensor, Name);
  FIELD(MLBridgeTensor, Type);
  FIELD(MLBridgeTensor, Rank);
  FIELD(MLBridgeTensor, Extents);
  FIELD(MLBridgeTensor, Data);
  FIELD(MLBridgeTensor, NumBytes);
  FIELD(MLBridgeTensor, NumElements);
  FIELD(MLBridgeTensor, Lengths);
  SIZE(MLBridgeRunnerCallbacks);
  FIELD(MLBridgeRunnerCallbacks, Size);
  FIELD(MLBridgeRunnerCallbacks, Create);
  FIELD(MLBridgeRunnerCallbacks, Evaluate);
  FIELD(MLBridgeRunnerCallbacks, Dispose);
  SIZE(MLBridgeEnvironmentCallbacks);
  FIELD(MLBridgeEnvironmentCallbacks, Size);
  FIELD(MLBridgeEnvironmentCallbacks, Reset);
  FIELD(MLBridgeEnvironmentCallbacks, Step);
  FIELD(MLBridgeEnvironmentCallbacks, Reward);
  SIZE(MLBridgeAgent);
  FIELD(MLBridgeAgent, Label);
  FIELD(MLBridgeAgent, Runner);
  return 0;
}
// NOLINTEND(bugprone-sizeof-expression)
