//===- Arguments.cpp - Arguments of calls from Python ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"

#include "Support/ForkDetector.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::Python;

/// Returns a number that differs between this process and the processes from
/// which it was forked.
static std::uint64_t processNumber() {
  static ForkDetector Fork;
  static std::uint64_t Number = 1;
  if (Fork.isForked()) {
    Fork.claim();
    ++Number;
  }
  return Number;
}

/// Returns whether the caller is the main thread of its process. After a fork,
/// the child's main thread is a copy of the thread that forked, and continues
/// that thread's calls. Therefore, the marks of that thread are valid in the
/// main thread. All other threads of the child were started later. Such a
/// thread may have the identifier of an unrelated thread of the parent.
static bool hasForked() { return ::gettid() == ::getpid(); }

ExclusiveUse::ExclusiveUse(UseMark &Mark, std::string_view What) : Mark(Mark) {
  const std::uint64_t Process = processNumber();
  const unsigned long Thread = PyThread_get_thread_ident();
  const bool IsOwn = Mark.Process != 0 && Mark.Thread == Thread;
  if (IsOwn && (Mark.Process == Process || hasForked()))
    raise({ErrorCode::InvalidArgument,
           std::string(What) +
               " is in use by another call of this thread, such "
               "as one that a signal handler interrupted"});
  if (Mark.Process == Process)
    raise({ErrorCode::InvalidArgument,
           std::string(What) +
               " is in use by another thread; each thread needs its own"});
  Mark = {Process, Thread};
}

Duration Python::durationOf(std::optional<double> Seconds) {
  if (!Seconds)
    return Duration::max();
  if (std::isnan(*Seconds))
    raise({ErrorCode::InvalidArgument,
           "expected a timeout in seconds, found nan"});
  std::chrono::duration<double> Wait(std::max(0.0, *Seconds));
  // Treat more than 146 years (half of the maximum) as no limit. Shorter
  // durations cannot overflow in the conversion.
  if (Wait > std::chrono::duration<double>(Duration::max() / 2))
    return Duration::max();
  return std::chrono::duration_cast<Duration>(Wait);
}

AdviceSpec Python::adviceSpecOf(std::optional<std::string_view> Type,
                                bool Many) {
  if (!Type)
    return AdviceSpec::any();
  std::optional<ElementType> Element = parseElementType(*Type);
  if (!Element)
    raise({ErrorCode::InvalidArgument,
           "'" + std::string(*Type) + "' is not an element type"});
  return {Many ? AdviceSpec::Form::List : AdviceSpec::Form::Scalar, *Element};
}
