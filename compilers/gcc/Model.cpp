//===- Model.cpp - The model of one decision ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Together with Model.h, the only code of the plug-in that uses the C API.
///
//===----------------------------------------------------------------------===//

#include "Model.h"

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <diagnostic-core.h>

/// The time for which each compile waits for the model. It is short, because a
/// build compiles many files.
static constexpr int64_t ConnectTimeout = 5'000'000'000; // ns

Model::Model(const char *Name, const char *Spec, MLBridgeModelRunnerRef Runner)
    : Name(Name), Runner(Runner), IsActive(strcmp(Spec, "none") != 0),
      HasLog(startswith(Spec, "record:")) {}

Model *Model::open(const char *Name, const char *Spec) {
  MLBridgeRunnerFactoryRef Factory = nullptr;
  MLBridgeModelRunnerRef Runner = nullptr;
  bool IsMade =
      mlbridgeCreateRunnerFactory(&Factory) == MLBridgeStatusSuccess &&
      mlbridgeSetConnectTimeout(Factory, ConnectTimeout) ==
          MLBridgeStatusSuccess &&
      mlbridgeCreateModelRunnerWithFactory(Factory, Spec, &Runner) ==
          MLBridgeStatusSuccess;
  mlbridgeDisposeRunnerFactory(Factory);
  if (IsMade)
    return new Model(Name, Spec, Runner);
  error("mlbridge: %s: %s", Name, mlbridgeGetLastErrorMessage());
  return nullptr;
}

int Model::ask(const char *Site, int Most, int Default) {
  if (HasLog)
    mlbridgeSwitchContext(Runner, Site);
  int32_t Reply = Default;
  MLBridgeStatus Status = mlbridgeEvaluateInt32(Runner, &Reply);
  if (Status == MLBridgeStatusDeferred)
    return Default;
  if (Status != MLBridgeStatusSuccess) {
    fail(mlbridgeGetStatusName(Status), mlbridgeGetLastErrorMessage());
    return Default;
  }
  if (Reply >= 0 && Reply <= Most)
    return Reply;
  char Why[80];
  snprintf(Why, sizeof Why, "expected a number from 0 to %d, found %d", Most,
           Reply);
  fail("out of range", Why);
  return Default;
}

void Model::log(int Done) {
  if (!HasLog || !IsActive)
    return;
  mlbridgeSetInt32(mlbridgeGetDecision(Runner), "decision", Done);
  MLBridgeStatus Status = mlbridgeLogOutcome(Runner, nullptr);
  if (Status != MLBridgeStatusSuccess)
    fail(mlbridgeGetStatusName(Status), mlbridgeGetLastErrorMessage());
}

/// Reports the first failure and makes gcc decide from then on. The report is a
/// note, because -Werror does not turn notes into errors.
void Model::fail(const char *Status, const char *Why) {
  inform(UNKNOWN_LOCATION, "mlbridge: %s: %s: %s; gcc decides", Name, Status,
         Why);
  IsActive = false;
}

void Model::close() {
  // Flush first, since mlbridgeFlush() returns an error if the log of a
  // `record:` runner cannot be written. mlbridgeDisposeModelRunner() cannot
  // return one.
  if (IsActive && mlbridgeFlush(Runner) != MLBridgeStatusSuccess)
    warning_at(UNKNOWN_LOCATION, 0, "mlbridge: %s: %s", Name,
               mlbridgeGetLastErrorMessage());
  mlbridgeDisposeModelRunner(Runner);
}
