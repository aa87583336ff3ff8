//===- FileCache.h - Caches what was loaded from files ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FileCache keeps the most recently used objects that were loaded from files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_FILECACHE_H
#define MLBRIDGE_LLVM_SUPPORT_FILECACHE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

namespace MLBridge {

/// The modification time and the size of a file.
using FileStamp = std::pair<std::int64_t, std::uint64_t>;

/// Returns the stamp of the module at \p Path, or System if it cannot be read.
Expected<FileStamp> stampOfModule(llvm::StringRef Path);

/// Only one thread at a time may use an object.
template <typename T> class FileCache {
public:
  /// Creates a cache of at most \p Limit objects, but at least one.
  explicit FileCache(std::size_t Limit) : Limit(Limit) {}

  /// Returns the object of the module at \p Path. Calls \p Load if the object
  /// is not in the cache, or if the file has changed. The pointer is valid
  /// until the next call. Returns System if the file cannot be read, or the
  /// error of \p Load.
  Expected<T *>
  get(llvm::StringRef Path,
      llvm::function_ref<Expected<std::unique_ptr<T>>(llvm::StringRef)> Load) {
    Expected<FileStamp> Stamp = stampOfModule(Path);
    if (!Stamp)
      return Stamp.takeError();
    const auto Known = llvm::find_if(
        Entries, [&](const Entry &One) { return One.Path == Path; });
    if (Known != Entries.end() && Known->Stamp == *Stamp) {
      Entries.splice(Entries.begin(), Entries, Known);
      return Known->Loaded.get();
    }
    if (Known != Entries.end())
      Entries.erase(Known);
    // Remove old objects before loading the next one, so that the old and the
    // new objects are never in memory together.
    while (!Entries.empty() && Entries.size() >= Limit)
      Entries.pop_back();
    Expected<std::unique_ptr<T>> Loaded = Load(Path);
    if (!Loaded)
      return Loaded.takeError();
    Entries.push_front({Path.str(), *Stamp, std::move(*Loaded)});
    return Entries.front().Loaded.get();
  }

private:
  struct Entry {
    std::string Path;
    FileStamp Stamp;
    std::unique_ptr<T> Loaded;
  };

  const std::size_t Limit;
  /// The most recently used entry is the first. The search is linear, because a
  /// cache has few entries.
  std::list<Entry> Entries;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_FILECACHE_H
