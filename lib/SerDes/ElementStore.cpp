//===- ElementStore.cpp - Memory for decoded tensors ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The growth of an ElementStore.
///
//===----------------------------------------------------------------------===//

#include "SerDes/ElementStore.h"

namespace MLBridge::serdes {

void ElementStore::grow(std::size_t NumBytes) {
  constexpr std::size_t SmallestCapacity = 4096;
  constexpr std::align_val_t Aligned{Alignment};
  std::size_t NewCapacity =
      std::max({Used + NumBytes, 2 * Capacity, SmallestCapacity});
  std::shared_ptr<std::byte> Larger(
      static_cast<std::byte *>(::operator new(NewCapacity, Aligned)),
      [](std::byte *Old) { ::operator delete(Old, Aligned); });
  if (Used != 0)
    std::memcpy(Larger.get(), Memory.get(), Used);
  Memory = std::move(Larger);
  Capacity = NewCapacity;
  HasChanged = true;
}

} // namespace MLBridge::serdes
