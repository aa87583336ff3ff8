//===- EpisodeRequest.cpp - A trainer's options for an episode ------------===//
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

#include "PhaseOrdering/EpisodeRequest.h"

#include "Support/ParseJSON.h"

#include <climits>

using namespace llvm;

namespace MLBridge {

static Error invalidOptions(const Twine &Why) {
  return {ErrorCode::InvalidArgument, ("the options of reset: " + Why).str()};
}

static Error readText(StringRef Key, const json::Value &Value,
                      std::string &Into) {
  std::optional<StringRef> Text = Value.getAsString();
  if (!Text || Text->empty())
    return invalidOptions("'" + Key + "': expected the name of a file");
  Into = Text->str();
  return Error::success();
}

static Error readSequence(const json::Value &Value, const ActionSpace &Actions,
                          ActionSequence &Into) {
  const json::Array *Items = Value.getAsArray();
  if (!Items)
    return invalidOptions("'sequence': expected a list of actions");
  for (const json::Value &Item : *Items) {
    std::optional<std::int64_t> Action = Item.getAsInteger();
    if (!Action || *Action < 0 ||
        static_cast<std::uint64_t>(*Action) >= Actions.size())
      return invalidOptions("'sequence': expected actions from 0 to " +
                            Twine(Actions.size() - 1));
    Into.push_back(static_cast<std::uint16_t>(*Action));
  }
  return Error::success();
}

static Error read(StringRef Key, const json::Value &Value,
                  const ActionSpace &Actions, EpisodeRequest &Into) {
  if (Key == "module")
    return readText(Key, Value, Into.Module);
  if (Key == "output")
    return readText(Key, Value, Into.Output);
  if (Key == "sequence")
    return readSequence(Value, Actions, Into.Sequence);
  if (Key == "final") {
    const StringRef Text = Value.getAsString().value_or("");
    if (Text != "last" && Text != "best")
      return invalidOptions("'final': expected \"last\" or \"best\"");
    Into.Result = Text == "best" ? EpisodeRequest::Final::Best
                                 : EpisodeRequest::Final::Last;
    return Error::success();
  }
  if (Key == "steps") {
    std::optional<std::int64_t> Steps = Value.getAsInteger();
    if (!Steps || *Steps < 1 || *Steps > INT_MAX)
      return invalidOptions("'steps': expected a number above 0");
    Into.Steps = static_cast<unsigned>(*Steps);
    return Error::success();
  }
  return invalidOptions(
      "expected module, sequence, final, steps and output, found '" + Key +
      "'");
}

Expected<EpisodeRequest> EpisodeRequest::parse(StringRef JSON,
                                               const ActionSpace &Actions) {
  EpisodeRequest Request;
  if (JSON.empty())
    return Request;
  llvm::Expected<json::Value> Parsed = parseJSON(JSON);
  if (!Parsed)
    return invalidOptions("expected JSON: " + toString(Parsed.takeError()));
  const json::Object *Object = Parsed->getAsObject();
  if (!Object)
    return invalidOptions("expected a JSON object");
  for (const auto &[Key, Value] : *Object)
    if (Error E = read(Key, Value, Actions, Request))
      return E;
  return Request;
}

} // namespace MLBridge
