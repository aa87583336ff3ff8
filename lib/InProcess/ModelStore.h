//===- ModelStore.h - Shares loaded models ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelStore: the loaded models of a RunnerFactory and its copies.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELSTORE_H
#define MLBRIDGE_LIB_INPROCESS_MODELSTORE_H

#include "InProcess/FileStamp.h"
#include "MLCompilerBridge/Runners/InProcessModelRunner.h"
#include "Support/PerProcess.h"

#include <map>
#include <mutex>

namespace MLBridge::inprocess {

/// Any number of threads can use it at the same time.
///
/// A forked child starts with an empty store: models have locks, and may have
/// threads, that do not survive fork(2).
class ModelStore {
public:
  /// The files of a model.
  struct Source {
    const std::string &File;
    FileStamp::Folders Folders;
    /// Lists the model's other files; may be empty.
    const std::function<std::vector<std::string>(const std::string &)> &Parts;
  };

  /// The model of \p From, stored under \p Key: the loaded model if its files
  /// have not changed, or else the result of \p Load. Threads that request the
  /// same model at the same time wait for one of them to load it. Failures are
  /// not stored.
  Expected<std::shared_ptr<const Model>>
  get(const std::string &Key, const Source &From,
      const InProcessModelRunner::Load &Load);

private:
  struct Entry {
    std::mutex Mutex;
    FileStamp Stamp;
    std::vector<std::string> Parts;
    FileStamp PartsStamp;
    std::shared_ptr<const Model> Loaded;
  };

  /// The models loaded by one process.
  struct Models {
    std::mutex Mutex;
    /// Entries are never moved or removed.
    std::map<std::string, Entry> Entries;
  };

  PerProcess<Models> Kept;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELSTORE_H
