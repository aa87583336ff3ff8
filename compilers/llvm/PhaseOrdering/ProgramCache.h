//===- ProgramCache.h - The programs of the last episodes -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ProgramCache: programs by the names of their files, the ones that were used
/// last.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H
#define MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H

#include "PhaseOrdering/Program.h"

#include <list>

namespace MLBridge {

class ProgramCache {
public:
  /// Keeps \p Limit programs, and 1 at least. \p Settings outlive it.
  ProgramCache(const ProgramSettings &Settings, std::size_t Limit)
      : Settings(Settings), Limit(Limit) {}

  /// The program in the file at \p Path; read again if that has changed. Valid
  /// until the next call. Errors: those of Program::load().
  Expected<Program *> get(llvm::StringRef Path);

private:
  struct Entry {
    std::string Path;
    /// The file's last change and size.
    std::pair<std::int64_t, std::uint64_t> Stamp;
    std::unique_ptr<Program> Loaded;
  };

  const ProgramSettings &Settings;
  const std::size_t Limit;
  /// The one that was used last is the first.
  std::list<Entry> Entries;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PROGRAMCACHE_H
