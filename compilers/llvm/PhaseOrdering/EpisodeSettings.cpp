//===- EpisodeSettings.cpp - A trainer's options for an episode -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the options of a reset key by key.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/EpisodeSettings.h"

#include "Support/ResetOptions.h"

#include <climits>

using namespace llvm;

namespace MLBridge {

static Error readSequence(const json::Value &Value, const ActionSpace &Actions,
                          ActionSequence &Into) {
  const json::Array *Items = Value.getAsArray();
  if (!Items)
    return invalidResetOptions("'sequence': expected a list of actions");
  for (const json::Value &Item : *Items) {
    std::optional<std::int64_t> Action = Item.getAsInteger();
    if (!Action || *Action < 0 ||
        static_cast<std::uint64_t>(*Action) >= Actions.size())
      return invalidResetOptions("'sequence': expected actions from 0 to " +
                                 Twine(Actions.size() - 1));
    Into.push_back(static_cast<std::uint16_t>(*Action));
  }
  return Error::success();
}

static Error read(StringRef Key, const json::Value &Value,
                  const ActionSpace &Actions, EpisodeSettings &Into) {
  if (Key == "module")
    return readFileName(Key, Value, Into.Module);
  if (Key == "output")
    return readFileName(Key, Value, Into.Output);
  if (Key == "sequence")
    return readSequence(Value, Actions, Into.Sequence);
  if (Key == "final") {
    const StringRef Text = Value.getAsString().value_or("");
    if (Text != "last" && Text != "best")
      return invalidResetOptions("'final': expected \"last\" or \"best\"");
    Into.Result = Text == "best" ? EpisodeSettings::Final::Best
                                 : EpisodeSettings::Final::Last;
    return Error::success();
  }
  if (Key == "steps") {
    std::optional<std::int64_t> Steps = Value.getAsInteger();
    if (!Steps || *Steps < 1 || *Steps > INT_MAX)
      return invalidResetOptions("'steps': expected a number above 0");
    Into.Steps = static_cast<unsigned>(*Steps);
    return Error::success();
  }
  return invalidResetOptions(
      "expected module, sequence, final, steps and output, found '" + Key +
      "'");
}

Expected<EpisodeSettings> EpisodeSettings::parse(StringRef JSON,
                                                 const ActionSpace &Actions) {
  EpisodeSettings Parsed;
  Error Failure =
      parseResetOptions(JSON, [&](StringRef Key, const json::Value &Value) {
        return read(Key, Value, Actions, Parsed);
      });
  if (Failure)
    return Failure;
  return Parsed;
}

} // namespace MLBridge
