//===- Policy.cpp - Requests the next action from a model -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts features to a request, and the reply to an action.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Policy.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;

namespace MLBridge {

Error PhaseOrderingPolicy::mismatch(const std::string &Why) const {
  return {ErrorCode::SchemaMismatch, Runner.describe() + ": " + Why};
}

Expected<const TensorView *>
PhaseOrderingPolicy::consult(const ModuleView &Module,
                             ArrayRef<std::uint16_t> Taken,
                             ArrayRef<const char *> Names) {
  ++Asked;
  Request.clear();
  Features.write(Module, Taken, Request);
  Expected<Advice> Given = Runner.ask(Request, AdviceSpec::any());
  if (!Given)
    return Given.takeError();
  for (const char *Name : Names)
    if (const TensorView *Output = Given->find(Name))
      return Output;
  Expected<const TensorView *> Only = Given->only();
  if (!Only)
    return mismatch(Only.takeError().message());
  return *Only;
}

Expected<float> PhaseOrderingPolicy::value(const ModuleView &Module,
                                           ArrayRef<std::uint16_t> Taken) {
  Expected<const TensorView *> Given = consult(Module, Taken, {"value"});
  if (!Given)
    return Given.takeError();
  const TensorView &Output = **Given;
  const std::string Name = "output '" + std::string(Output.Name) + "'";
  if (Output.Type == ElementType::String || Output.numElements() != 1)
    return mismatch(Name +
                    ": expected one number, the value of a state, "
                    "found " +
                    Output.typeStr());
  Expected<float> Value = Runner.convert<float>(Advice({&Output, 1}));
  if (Value && std::isnan(*Value))
    return mismatch(Name + ": expected a number, found NaN");
  return Value;
}

Expected<PhaseOrderingPolicy::Reply>
PhaseOrderingPolicy::ask(const ModuleView &Module,
                         ArrayRef<std::uint16_t> Taken) {
  Expected<const TensorView *> Given =
      consult(Module, Taken, {"action", "logits", "values"});
  if (!Given)
    return Given.takeError();
  return read(**Given);
}

Expected<PhaseOrderingPolicy::Reply>
PhaseOrderingPolicy::read(const TensorView &Output) const {
  const std::string Name = "output '" + std::string(Output.Name) + "'";
  Reply Result;
  if (Output.Type != ElementType::String && Output.numElements() == 1 &&
      NumChoices != 1) {
    Expected<std::int64_t> Action =
        Runner.convert<std::int64_t>(Advice({&Output, 1}));
    if (!Action)
      return Action.takeError();
    if (*Action < 0 || static_cast<std::uint64_t>(*Action) >= NumChoices)
      return mismatch(Name + ": expected an action from 0 to " +
                      std::to_string(NumChoices - 1) + ", found " +
                      std::to_string(*Action));
    Result.Action = static_cast<std::size_t>(*Action);
    return Result;
  }
  if (Output.Type == ElementType::String || Output.numElements() != NumChoices)
    return mismatch(Name + ": expected an action, or " +
                    std::to_string(NumChoices) +
                    " numbers, one for each, found " + Output.typeStr());
  Expected<std::vector<float>> Values =
      Runner.convert<std::vector<float>>(Advice({&Output, 1}));
  if (!Values)
    return Values.takeError();
  if (any_of(*Values, [](float Value) { return std::isnan(Value); }))
    return mismatch(Name + ": expected numbers, found NaN");
  Result.Values = std::move(*Values);
  Result.Action = static_cast<std::size_t>(
      std::distance(Result.Values.begin(), max_element(Result.Values)));
  return Result;
}

Error PhaseOrderingPolicy::tell(std::size_t Action) {
  return Runner.logOutcome(
      std::pair("action", static_cast<std::int64_t>(Action)));
}

} // namespace MLBridge
