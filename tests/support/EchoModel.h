//===- EchoModel.h - A model that echoes its features -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model side in a thread of the test. It replies with the features of the
/// request, unless a feature has the name EchoModel::Control.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_ECHOMODEL_H
#define MLBRIDGE_TESTS_SUPPORT_ECHOMODEL_H

#include "MLCompilerBridge/Transport/ModelServer.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace MLBridge::test {

/// A new directory. The destructor removes it and its contents.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  std::string path(std::string_view Name) const {
    return Path + "/" + std::string(Name);
  }
  const std::string &path() const { return Path; }

private:
  std::string Path;
};

/// Returns a server whose only listener is \p Only.
std::unique_ptr<ModelServer> serverOf(std::unique_ptr<Listener> Only);

class EchoModel {
public:
  /// If a string feature has this name, the model does not echo. Instead, it
  /// fails or defers, as the feature's value "fail" or "defer" states.
  static constexpr std::string_view Control = "control";

  explicit EchoModel(std::string Name, ModelServerOptions Options = {});
  explicit EchoModel(std::unique_ptr<ModelServer> Server);
  ~EchoModel();

  /// Ends the thread. The server can still be used.
  ModelServer &stop();

private:
  void run();

  std::unique_ptr<ModelServer> Server;
  std::atomic<bool> Stop = false;
  std::thread Thread;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_ECHOMODEL_H
