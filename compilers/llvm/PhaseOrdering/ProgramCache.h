//===- ProgramCache.h - Caches recently used programs -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ProgramCache keeps the most recently used programs in memory.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H
#define MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H

#include "PhaseOrdering/Program.h"

#include <list>

namespace MLBridge {

class ProgramCache {
public:
  /// Creates a cache of at most \p Limit programs, but at least one. \p
  /// Settings must outlive this object.
  ProgramCache(const ProgramSettings &Settings, std::size_t Limit)
      : Settings(Settings), Limit(Limit) {}

  /// Returns the program in the file at \p Path. The file is read again if it
  /// has changed. The pointer is valid until the next call. Returns the errors
  /// of Program::load().
  Expected<Program *> get(llvm::StringRef Path);

private:
  struct Entry {
    std::string Path;
    /// The file's modification time and size.
    std::pair<std::int64_t, std::uint64_t> Stamp;
    std::unique_ptr<Program> Loaded;
  };

  const ProgramSettings &Settings;
  const std::size_t Limit;
  /// The entries, with the most recently used entry first.
  std::list<Entry> Entries;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H
