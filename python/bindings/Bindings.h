//===- Bindings.h - The parts of the module ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the files of mlbridge._core share. Each file has one bind function.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_BINDINGS_H
#define MLBRIDGE_PYTHON_BINDINGS_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Transport/Listener.h"

#include <cstdint>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string_view>

namespace MLBridge::Python {

void bindCodec(nanobind::module_ &M);
void bindListeners(nanobind::module_ &M);
void bindFormats(nanobind::module_ &M);
void bindRunner(nanobind::module_ &M);
void bindInProcess(nanobind::module_ &M);
void bindServer(nanobind::module_ &M);

/// mlbridge._core.Listener: owns a listener until a server takes it. Modules of
/// optional parts, such as mlbridge._grpc, make them too.
struct ListenerInPython {
  /// Null after a server has taken it.
  std::unique_ptr<Listener> Opened;
};

/// The thread that uses an object. Read and written with the GIL.
struct UseMark {
  /// The number of the thread's process; 0 while the object is not in use. A
  /// forked child has another number, so the threads of its parent, which do
  /// not exist in the child, do not count.
  std::uint64_t Process = 0;
  unsigned long Thread = 0;
};

/// Marks an object as in use while a call releases the GIL, or runs Python code
/// that may release it. A second thread then gets an error instead of a race.
class ExclusiveUse {
public:
  /// \p What names the object in the error message.
  ExclusiveUse(UseMark &Mark, std::string_view What);
  ~ExclusiveUse() { Mark = {}; }
  ExclusiveUse(const ExclusiveUse &) = delete;
  ExclusiveUse &operator=(const ExclusiveUse &) = delete;

private:
  UseMark &Mark;
};

/// Converts a timeout in seconds. None and inf mean no limit; a negative number
/// means zero. Raises InvalidArgument for NaN.
Duration durationOf(std::optional<double> Seconds);

/// The advice that a caller wants: one element of the type named \p Type, a
/// list if \p Many, or anything without a type. Raises InvalidArgument for an
/// unknown name.
AdviceSpec adviceSpecOf(std::optional<std::string_view> Type, bool Many);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_BINDINGS_H
