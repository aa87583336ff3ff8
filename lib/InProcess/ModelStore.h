//===- ModelStore.h - Models that are loaded once ---------------*- C++ -*-===//
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

/// Used by any number of threads at a time.
///
/// A child of the process that made it begins with an empty store: models have
/// locks, and may have threads, that fork(2) does not carry over.
class ModelStore {
public:
  /// A model's file, and what belongs to it.
  struct Source {
    const std::string &File;
    FileStamp::Folders Folders;
    /// The other files that belong to it, if any.
    const std::function<std::vector<std::string>(const std::string &)> &Parts;
  };

  /// The model of \p From, by whatever name it is kept (\p Key): the one that
  /// is there if its files are as they were, else what \p Load gives. Threads
  /// that ask for the same one at the same time wait for one of them to load
  /// it; a failure is not kept.
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

  /// What one process has loaded.
  struct Models {
    std::mutex Mutex;
    /// Entries stay where they are, and are never removed.
    std::map<std::string, Entry> Entries;
  };

  PerProcess<Models> Kept;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELSTORE_H
