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
#include "MLCompilerBridge/InProcessModelRunner.h"

#include <map>
#include <mutex>

namespace MLBridge::inprocess {

/// Used by any number of threads at a time.
class ModelStore {
public:
  /// The files that belong to one, if any.
  using ListParts =
      std::function<std::vector<std::string>(const std::string &)>;

  /// The model in \p File, by whatever name it is kept (\p Key): the one that
  /// is there if the file and its \p Parts are as they were, else what \p Load
  /// gives. Threads that ask for the same one at the same time wait for one of
  /// them to load it; a failure is not kept.
  Expected<std::shared_ptr<const Model>>
  get(const std::string &Key, const std::string &File, const ListParts &Parts,
      const InProcessModelRunner::Load &Load);

private:
  struct Entry {
    std::mutex Mutex;
    FileStamp Stamp;
    std::vector<std::string> Parts;
    FileStamp PartsStamp;
    std::shared_ptr<const Model> Loaded;
  };

  std::mutex Mutex;
  /// Entries stay where they are, and are never removed.
  std::map<std::string, Entry> Entries;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELSTORE_H
