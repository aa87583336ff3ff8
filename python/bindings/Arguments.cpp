//===- Arguments.cpp - What calls from Python have in common --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"

#include <algorithm>
#include <cmath>

using namespace MLBridge;
using namespace MLBridge::Python;

ExclusiveUse::ExclusiveUse(bool &InUse, std::string_view What) : InUse(InUse) {
  if (InUse)
    raise({ErrorCode::InvalidArgument,
           std::string(What) +
               " is in use by another thread; each thread needs its own"});
  InUse = true;
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
