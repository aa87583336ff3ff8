//===- ProgramCache.cpp - Caches recently used programs -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Searches the list linearly, because a cache has few programs.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/ProgramCache.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {

Expected<Program *> ProgramCache::get(StringRef Path) {
  sys::fs::file_status Status;
  if (std::error_code Why = sys::fs::status(Path, Status))
    return Error(
        ErrorCode::System,
        ("module '" + Path + "': cannot be read: " + Why.message()).str());
  const std::pair Stamp(
      Status.getLastModificationTime().time_since_epoch().count(),
      Status.getSize());

  auto Known = find_if(Entries, [&](const Entry &E) { return E.Path == Path; });
  if (Known != Entries.end() && Known->Stamp == Stamp) {
    Entries.splice(Entries.begin(), Entries, Known);
    return Known->Loaded.get();
  }
  if (Known != Entries.end())
    Entries.erase(Known);
  // Remove old programs before reading the next one, so that the old and the
  // new programs are never in memory together.
  while (!Entries.empty() && Entries.size() >= Limit)
    Entries.pop_back();
  Expected<std::unique_ptr<Program>> Loaded = Program::load(Path, Settings);
  if (!Loaded)
    return Loaded.takeError();
  Entries.push_front({Path.str(), Stamp, std::move(*Loaded)});
  return Entries.front().Loaded.get();
}

} // namespace MLBridge
