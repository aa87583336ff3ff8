//===- ModelStore.h - Shares loaded models ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelStore: the loaded models of a RunnerFactory. Copies of the factory
/// share the store.
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

/// Any number of threads can use a ModelStore at the same time.
///
/// A forked child starts with an empty store. Models have locks and may have
/// threads, and a child can use neither of them.
class ModelStore {
public:
  struct Source {
    const std::string &File;
    FileStamp::Folders Folders;
    /// A function that lists the model's other files. The function may be
    /// empty.
    const std::function<std::vector<std::string>(const std::string &)> &Parts;
  };

  /// Returns the model of \p From, stored under \p Key. If the model's files
  /// have not changed, this is the stored model. Otherwise, it is the result of
  /// \p Load. If several threads request the same model at the same time, one
  /// thread loads it and all other threads wait. Failures are not stored.
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

  /// The models that one process has loaded.
  struct Models {
    std::mutex Mutex;
    /// The entries by their keys. Entries are never moved or removed.
    std::map<std::string, Entry> Entries;
  };

  PerProcess<Models> Kept;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELSTORE_H
