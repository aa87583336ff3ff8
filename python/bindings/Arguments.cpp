//===- Arguments.cpp - What calls from Python have in common --------------===//
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

/// Of this process, and of none that it was forked from.
static std::uint64_t processNumber() {
  static ForkDetector Fork;
  static std::uint64_t Number = 1;
  if (Fork.isForked()) {
    Fork.claim();
    ++Number;
  }
  return Number;
}

/// Whether the caller is the thread that has forked: the only one that a child
/// has from its parent, with the calls that it was in. A later thread may have
/// the identifier of one that was not copied.
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
    raise({ErrorCode::InvalidArgument, "a time-out of nan seconds"});
  std::chrono::duration<double> Wait(std::max(0.0, *Seconds));
  // Half of what 64 bits hold is 146 years, and safe to convert.
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
           "no element type is called '" + std::string(*Type) + "'"});
  return {Many ? AdviceSpec::Form::List : AdviceSpec::Form::Scalar, *Element};
}
