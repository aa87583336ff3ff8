//===- Damage.h - Changes a file unnoticeably -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// damageUnseen(): with it, a test finds out whether a file is read again.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_DAMAGE_H
#define MLBRIDGE_TESTS_SUPPORT_DAMAGE_H

#include <filesystem>
#include <fstream>
#include <string>

namespace MLBridge::test {

/// Overwrites the contents of \p File, but keeps its inode, size and
/// modification time.
inline void damageUnseen(const std::filesystem::path &File) {
  const auto Time = std::filesystem::last_write_time(File);
  const std::string Damage(std::filesystem::file_size(File), '\xff');
  std::fstream(File, std::ios::in | std::ios::out | std::ios::binary) << Damage;
  std::filesystem::last_write_time(File, Time);
}

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_DAMAGE_H
