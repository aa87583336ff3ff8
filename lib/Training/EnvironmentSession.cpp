//===- EnvironmentSession.cpp - Executes training messages ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Calls the environment for each command and writes the result to a message.
/// An invalid command does not change the environment. A failed call ends the
/// episode.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/EnvironmentSession.h"

#include <optional>

using namespace MLBridge;

static const TensorView *find(Span<const TensorView> Message,
                              std::string_view Name) {
  for (const TensorView &Tensor : Message)
    if (Tensor.Name == Name)
      return &Tensor;
  return nullptr;
}

static Error invalid(std::string Why) {
  return {ErrorCode::InvalidArgument, std::move(Why)};
}

/// Returns the text of the tensor \p Name, or nullopt if the message lacks this
/// tensor.
static Expected<std::optional<std::string_view>>
findText(Span<const TensorView> Message, std::string_view Name) {
  const TensorView *Tensor = find(Message, Name);
  if (!Tensor)
    return std::optional<std::string_view>();
  if (Tensor->Type != ElementType::String || !Tensor->Dims.isScalar())
    return invalid("'" + std::string(Name) + "': expected a string, found " +
                   Tensor->typeStr());
  return std::optional(Tensor->text());
}

Span<const TensorView> EnvironmentSession::greet() {
  Reply.clear();
  Reply.set(ReservedNames::Ready, true);
  return Reply.tensors();
}

Span<const TensorView>
EnvironmentSession::reply(Span<const TensorView> Message) {
  Reply.clear();
  if (Error E = execute(Message)) {
    Reply.clear();
    Reply.set(ReservedNames::Error, std::string_view(E.message()));
    Reply.set(ReservedNames::Code, errorCodeName(E.code()));
  }
  return Reply.tensors();
}

Error EnvironmentSession::execute(Span<const TensorView> Message) {
  Expected<std::optional<std::string_view>> Command =
      findText(Message, ReservedNames::Command);
  if (!Command)
    return Command.takeError();
  if (!*Command)
    return invalid("expected the string '_command' with reset, step or close, "
                   "found no tensor of that name");
  if (**Command == "step")
    return step(Message);
  if (**Command == "reset")
    return reset(Message);
  if (**Command != "close")
    return invalid("expected the command reset, step or close, found '" +
                   std::string(**Command) + "'");
  Closed = true;
  return Error::success();
}

Error EnvironmentSession::reset(Span<const TensorView> Message) {
  std::optional<std::int64_t> Seed;
  if (const TensorView *Tensor = find(Message, ReservedNames::Seed)) {
    Expected<std::int64_t> Value =
        Advice({Tensor, 1}).get<std::int64_t>(ReservedNames::Seed);
    if (!Value)
      return Value.takeError();
    Seed = *Value;
  }
  Expected<std::optional<std::string_view>> Options =
      findText(Message, ReservedNames::Options);
  if (!Options)
    return Options.takeError();

  State = Episode::None;
  Env.beginEpisode(Seed, Options->value_or(std::string_view()));
  if (Error E = Env.reset(Reply))
    return E;
  return observe(0);
}

Error EnvironmentSession::step(Span<const TensorView> Message) {
  if (State != Episode::Running)
    return invalid(State == Episode::Over
                       ? "step after the end of the episode; reset first"
                       : "step outside an episode; reset first");
  Action.clear();
  for (const TensorView &Tensor : Message)
    if (!Tensor.Name.starts_with('_'))
      Action.push_back(Tensor);
  if (Action.empty())
    return invalid("step without an action: expected the tensor 'action', or "
                   "several tensors with other names");

  State = Episode::None;
  Env.beginStep();
  if (Error E = Env.step(Advice(Action), Reply))
    return E;
  return observe(Env.reward());
}

/// Adds the reserved tensors to the environment's observation.
Error EnvironmentSession::observe(double Reward) {
  if (Reply.error())
    return Reply.error();
  for (const TensorView &Feature : Reply.tensors())
    if (Feature.Name.starts_with('_'))
      return invalid("feature '" + std::string(Feature.Name) +
                     "': names that begin with an underscore are the "
                     "protocol's own");
  Reply.set(ReservedNames::Reward, Reward);
  Reply.set(ReservedNames::Terminated, Env.isTerminated());
  Reply.set(ReservedNames::Truncated, Env.isTruncated());
  if (!Env.getNextAgent().empty())
    Reply.set(ReservedNames::Agent, std::string_view(Env.getNextAgent()));
  if (!Env.info().empty())
    Reply.set(ReservedNames::Info, std::string_view(Env.info()));
  State = Env.checkDone() ? Episode::Over : Episode::Running;
  return Error::success();
}
