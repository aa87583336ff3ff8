//===- Model.h - The model of one decision ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Model, which asks the model of one kind of decision. After a failure
/// of the model, gcc prints one note and makes all further decisions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_GCC_MODEL_H
#define MLBRIDGE_GCC_MODEL_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <string>

/// The model that makes one kind of decision in one compile.
class Model {
public:
  /// Returns the model at \p Spec for the decision \p Name, or null after an
  /// error message. gcc keeps the model until gcc exits. The runner connects at
  /// the first request.
  static Model *open(const char *Name, const char *Spec);

  /// False if the spec is `none`, which always defers. Also false after a
  /// failure, so that the compile does not wait again. If false, send no
  /// requests.
  bool isActive() const { return IsActive; }

  /// Sets a feature of the next request.
  Model &set(const char *Feature, int32_t Value) {
    mlbridgeSetInt32(mlbridgeGetFeatures(Runner), Feature, Value);
    return *this;
  }
  Model &set(const char *Feature, int64_t Value) {
    mlbridgeSetInt64(mlbridgeGetFeatures(Runner), Feature, Value);
    return *this;
  }
  Model &set(const char *Feature, float Value) {
    mlbridgeSetFloat(mlbridgeGetFeatures(Runner), Feature, Value);
    return *this;
  }

  /// Sends the request. Returns the reply, an integer from 0 to \p Most, or
  /// \p Default if the model defers or fails. \p Site is the name of the
  /// request in logs.
  int ask(const char *Site, int Most, int Default);

  /// Logs gcc's decision after a request, if the spec begins with `record:`.
  void log(int Done);

  /// Ends the model. Prints a warning if its log cannot be written.
  void close();

private:
  Model(const char *Name, const char *Spec);
  /// Reports the error of the last call of the C API.
  void fail(MLBridgeStatus Status);
  /// Reports a failure and makes gcc decide from then on.
  void leaveToGcc(const std::string &Why);

  const char *Name;
  MLBridgeModelRunnerRef Runner = nullptr;
  bool IsActive;
  /// True if the spec begins with `record:`.
  bool HasLog;
};

#endif // MLBRIDGE_GCC_MODEL_H
