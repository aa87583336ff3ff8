//===- ModelStore.cpp - Shares loaded models ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/ModelStore.h"

using namespace MLBridge;
using namespace MLBridge::inprocess;

Expected<std::shared_ptr<const Model>>
ModelStore::get(const std::string &Key, const Source &From,
                const InProcessModelRunner::Load &Load) {
  Models &Known = Kept.get();
  Entry *Found;
  {
    std::scoped_lock Lock(Known.Mutex);
    Found = &Known.Entries[Key];
  }
  // Lock only this model, so that other models can be loaded at the same time.
  std::scoped_lock Lock(Found->Mutex);
  // Compute the stamp before loading, so that a change during loading is
  // noticed later.
  Expected<FileStamp> Stamp = FileStamp::of(From.File, From.Folders);
  if (!Stamp)
    return Stamp.takeError();
  // List the model's other files only if the main file has changed. An
  // unchanged file names the same other files.
  const bool IsSame = Found->Loaded && Found->Stamp == *Stamp;
  std::vector<std::string> Others;
  if (!IsSame && From.Parts)
    Others = From.Parts(From.File);
  Expected<FileStamp> OthersStamp =
      FileStamp::ofParts(IsSame ? Found->Parts : Others);
  if (!OthersStamp)
    return OthersStamp.takeError();
  if (IsSame && Found->PartsStamp == *OthersStamp)
    return Found->Loaded;
  Expected<std::shared_ptr<const Model>> Loaded = Load();
  if (!Loaded)
    return Loaded;
  if (!IsSame)
    Found->Parts = std::move(Others);
  Found->Stamp = std::move(*Stamp);
  Found->PartsStamp = std::move(*OthersStamp);
  Found->Loaded = *Loaded;
  return Loaded;
}
