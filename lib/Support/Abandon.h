//===- Abandon.h - Leaks an object on purpose -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines abandon(), for objects of a library that has threads. A forked child
/// has copies of the objects, but not of the threads. In the child, destroying
/// an object could wait forever for a missing thread, or for a lock that a
/// thread held during the fork.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_ABANDON_H
#define MLBRIDGE_LIB_SUPPORT_ABANDON_H

#include <type_traits>
#include <utility>

namespace MLBridge {

/// Moves \p Object to memory in which it is never destroyed.
template <typename T> void abandon(T &&Object) {
  static_assert(!std::is_reference_v<T>, "move the object here");
  union Kept {
    explicit Kept(T &&Given) : Object(std::forward<T>(Given)) {}
    ~Kept() {}
    T Object;
  };
  [[maybe_unused]] Kept Forever(std::forward<T>(Object));
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_ABANDON_H
