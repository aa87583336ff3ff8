//===- PerProcess.h - An object that children do not share ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PerProcess: fork(2) copies an object, but not the threads that use it. A
/// lock of it that another thread held stays locked for ever in the child.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_PERPROCESS_H
#define MLBRIDGE_LIB_SUPPORT_PERPROCESS_H

#include "Support/ForkDetector.h"

#include <atomic>
#include <memory>

namespace MLBridge {

/// A T that is made anew, by its default constructor, in each process that asks
/// for it. What a child has copied of its parent's is left as it is, and is not
/// destroyed either. Used by any number of threads at a time.
template <typename T> class PerProcess {
public:
  PerProcess() : Current(new Made()) {}
  ~PerProcess() {
    std::unique_ptr<const Made> Last(Current.load());
    if (Last->Fork.isForked())
      static_cast<void>(Last.release());
  }
  PerProcess(const PerProcess &) = delete;
  PerProcess &operator=(const PerProcess &) = delete;

  T &get() {
    Made *Known = Current.load();
    while (Known->Fork.isForked()) {
      auto Own = std::make_unique<Made>();
      Own->Parents = Known;
      // Another thread of the child may have been first; it is in Known then.
      if (Current.compare_exchange_strong(Known, Own.get()))
        Known = Own.release();
    }
    return Known->Value;
  }

private:
  struct Made {
    const ForkDetector Fork;
    T Value;
    /// Left as it is. Kept here, where leak checkers find it.
    const Made *Parents = nullptr;
  };

  /// Owned by the process that made it.
  std::atomic<Made *> Current;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_PERPROCESS_H
