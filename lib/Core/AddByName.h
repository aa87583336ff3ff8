//===- AddByName.h - Tables of named entries --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines addByName(), which adds a scheme or a format to a factory's table.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_CORE_ADDBYNAME_H
#define MLBRIDGE_LIB_CORE_ADDBYNAME_H

#include <algorithm>
#include <utility>
#include <vector>

namespace MLBridge {

/// Adds \p New to \p Table, or replaces the entry with the same Name.
template <typename T> void addByName(std::vector<T> &Table, T New) {
  auto Found = std::ranges::find(Table, New.Name, &T::Name);
  if (Found != Table.end())
    *Found = std::move(New);
  else
    Table.push_back(std::move(New));
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_CORE_ADDBYNAME_H
