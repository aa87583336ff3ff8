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

#include <string>

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <diagnostic-core.h>

/// The time for which each compile waits for the model. It is short, because a
/// build compiles many files.
static constexpr int64_t ConnectTimeout = 5'000'000'000; // ns

Model::Model(const char *Name, const char *Spec)
    : Name(Name), IsActive(strcmp(Spec, "none") != 0),
      HasLog(startswith(Spec, "record:")) {}

Model *Model::open(const char *Name, const char *Spec) {
  auto *Opened = new Model(Name, Spec);
  MLBridgeRunnerFactoryRef Factory = nullptr;
  // Each function of the C API returns 0 for success.
  bool HasFailed =
      mlbridgeCreateRunnerFactory(&Factory) ||
      mlbridgeSetConnectTimeout(Factory, ConnectTimeout) ||
      mlbridgeCreateModelRunnerWithFactory(Factory, Spec, &Opened->Runner);
  mlbridgeDisposeRunnerFactory(Factory);
  if (!HasFailed)
    return Opened;
  error("mlbridge: %s: %s", Name, mlbridgeGetLastErrorMessage());
  delete Opened;
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
    fail(Status);
    return Default;
  }
  if (Reply >= 0 && Reply <= Most)
    return Reply;
  leaveToGcc("out of range: expected a number from 0 to " +
             std::to_string(Most) + ", found " + std::to_string(Reply));
  return Default;
}

void Model::log(int Done) {
  if (!HasLog || !IsActive)
    return;
  mlbridgeSetInt32(mlbridgeGetDecision(Runner), "decision", Done);
  if (MLBridgeStatus Status = mlbridgeLogOutcome(Runner, nullptr))
    fail(Status);
}

void Model::fail(MLBridgeStatus Status) {
  leaveToGcc(std::string(mlbridgeGetStatusName(Status)) + ": " +
             mlbridgeGetLastErrorMessage());
}

void Model::leaveToGcc(const std::string &Why) {
  // Print a note, because -Werror does not turn notes into errors.
  inform(UNKNOWN_LOCATION, "mlbridge: %s: %s; gcc decides", Name, Why.c_str());
  IsActive = false;
}

void Model::close() {
  // Flush first, because mlbridgeFlush() returns an error if the log of a
  // `record:` runner cannot be written. mlbridgeDisposeModelRunner() returns no
  // errors.
  if (IsActive && mlbridgeFlush(Runner))
    warning_at(UNKNOWN_LOCATION, 0, "mlbridge: %s: %s", Name,
               mlbridgeGetLastErrorMessage());
  mlbridgeDisposeModelRunner(Runner);
}
