//===- Bindings.h - The parts of the module ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mlbridge._core, part by part: one function a file.
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

/// A listener on its way to a server, in Python mlbridge._core.Listener.
/// Optional parts make theirs in modules of their own.
struct ListenerInPython {
  /// Null once a server has it.
  std::unique_ptr<Listener> Opened;
};

/// Who uses an object; nobody at first. Read and written with the GIL.
struct UseMark {
  /// 0 for nobody. A forked child has another number, and the threads of its
  /// parent, which do not exist there, use nothing.
  std::uint64_t Process = 0;
  unsigned long Thread = 0;
};

/// Says that an object is in use while it lets go of the GIL, or runs Python
/// code that may, so that a second thread gets an error and not a race.
class ExclusiveUse {
public:
  /// \p What is the object, for the message.
  ExclusiveUse(UseMark &Mark, std::string_view What);
  ~ExclusiveUse() { Mark = {}; }
  ExclusiveUse(const ExclusiveUse &) = delete;
  ExclusiveUse &operator=(const ExclusiveUse &) = delete;

private:
  UseMark &Mark;
};

/// Seconds as Python writes them; none and inf are for ever, and what is below
/// zero is zero.
Duration durationOf(std::optional<double> Seconds);

/// What an answer is to be: anything, or one element (or \p Many) of the type
/// of that name.
AdviceSpec adviceSpecOf(std::optional<std::string_view> Type, bool Many);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_BINDINGS_H
