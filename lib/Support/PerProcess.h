//===- PerProcess.h - A separate object in each process ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines PerProcess, which gives each process a separate object. After
/// fork(2), the child has a copy of the parent's object, but this copy may be
/// unusable. For example, a lock that another thread held during the fork stays
/// locked in the child.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_PERPROCESS_H
#define MLBRIDGE_LIB_SUPPORT_PERPROCESS_H

#include "Support/ForkDetector.h"

#include <atomic>
#include <memory>

namespace MLBridge {

/// Holds a T, which each process default-constructs at the first use. A child
/// neither uses nor destroys its copy of the parent's T. Any number of threads
/// may call get() at the same time.
template <typename T> class PerProcess {
public:
  PerProcess() : Current(new Instance()) {}
  ~PerProcess() {
    std::unique_ptr<const Instance> Last(Current.load());
    if (Last->Fork.isForked())
      static_cast<void>(Last.release());
  }
  PerProcess(const PerProcess &) = delete;
  PerProcess &operator=(const PerProcess &) = delete;

  T &get() {
    Instance *Known = Current.load();
    while (Known->Fork.isForked()) {
      auto Own = std::make_unique<Instance>();
      Own->Parents = Known;
      // If another thread of the child has already stored an instance, this
      // call loads that instance to Known.
      if (Current.compare_exchange_strong(Known, Own.get()))
        Known = Own.release();
    }
    return Known->Value;
  }

private:
  struct Instance {
    const ForkDetector Fork;
    T Value;
    /// The parent's instance. It is not used, but leak checkers must find a
    /// pointer to it.
    const Instance *Parents = nullptr;
  };

  /// The current instance, which the process that created it owns.
  std::atomic<Instance *> Current;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_PERPROCESS_H
