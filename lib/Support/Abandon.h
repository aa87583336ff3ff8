//===- Abandon.h - What a forked child must not destroy ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// abandon(): for objects of a library that has threads. A forked child has a
/// copy of the objects and none of the threads: destroying one of them would
/// wait for a thread, or take a lock that a thread held during the fork.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_ABANDON_H
#define MLBRIDGE_LIB_SUPPORT_ABANDON_H

#include <type_traits>
#include <utility>

namespace MLBridge {

/// Takes \p Object over, and never destroys it.
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
