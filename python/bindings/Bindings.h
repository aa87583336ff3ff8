//===- Bindings.h - The parts of the module ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declarations that the files of mlbridge._core share. Each of these files
/// defines one bind function.
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

/// The Python class mlbridge._core.Listener. It owns a listener until a server
/// takes the listener over. Optional modules, such as mlbridge._grpc, also
/// create objects of this class.
struct ListenerInPython {
  /// The listener, or null after a server has taken it over.
  std::unique_ptr<Listener> Opened;
};

/// Records which thread uses an object. A thread must hold the GIL to read or
/// write the mark.
struct UseMark {
  /// The number of the process that uses the object, or 0 while the object is
  /// not in use. A forked child has another number than its parent. Marks of
  /// the parent's threads are therefore ignored in the child, where these
  /// threads do not exist.
  std::uint64_t Process = 0;
  unsigned long Thread = 0;
};

/// Marks an object as in use for the duration of a call. A call needs the mark
/// if it releases the GIL, or runs Python code, which may release the GIL. If a
/// second thread uses the object during the call, that thread gets an error
/// instead of causing a data race.
class ExclusiveUse {
public:
  /// Marks the object. Raises InvalidArgument if the object is already in use.
  /// \p What names the object in the error message.
  ExclusiveUse(UseMark &Mark, std::string_view What);
  ~ExclusiveUse() { Mark = {}; }
  ExclusiveUse(const ExclusiveUse &) = delete;
  ExclusiveUse &operator=(const ExclusiveUse &) = delete;

private:
  UseMark &Mark;
};

/// Converts a timeout in seconds. None and inf mean that there is no limit. A
/// negative number means zero. Raises InvalidArgument for NaN.
Duration durationOf(std::optional<double> Seconds);

/// Returns the advice that a caller expects. This is one element of the type
/// named \p Type, or a list of such elements if \p Many is true. Without \p
/// Type, any advice is accepted. Raises InvalidArgument if \p Type is not the
/// name of a type.
AdviceSpec adviceSpecOf(std::optional<std::string_view> Type, bool Many);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_BINDINGS_H
