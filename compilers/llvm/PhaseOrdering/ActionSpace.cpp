//===- ActionSpace.cpp - The actions of phase ordering --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads and parses action spaces. A built-in space is stored as the text of
/// its JSON file, so it is parsed in the same way as any other file.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/ActionSpace.h"

#include "PhaseOrdering/BuiltinActionSpaces.h"
#include "Pipeline/PassRunner.h"
#include "Support/ParseJSON.h"
#include "Support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

namespace MLBridge {

static Error malformed(StringRef Source, const Twine &Why) {
  return {ErrorCode::Malformed,
          ("action space '" + Source + "': " + Why).str()};
}

Expected<ActionSpace> ActionSpace::load(StringRef NameOrFile) {
  for (const BuiltinActionSpace &Known : BuiltinActionSpaces)
    if (Known.Name == NameOrFile)
      return parse(Known.Text, Known.Name);
  constexpr std::uint64_t MaxBytes = std::uint64_t(16) << 20;
  auto File = readFile(NameOrFile, MaxBytes);
  if (!File) {
    Error E = File.takeError();
    return Error(E.code(),
                 ("action space '" + NameOrFile +
                  "': expected oz, odg, passes or a file: " + E.message())
                     .str());
  }
  return parse((*File)->getBuffer(), NameOrFile);
}

Expected<ActionSpace> ActionSpace::parse(StringRef Text, StringRef Source) {
  llvm::Expected<json::Value> JSON = parseJSON(Text);
  if (!JSON)
    return malformed(Source, "expected JSON: " + toString(JSON.takeError()));
  const json::Object *Object = JSON->getAsObject();
  if (!Object)
    return malformed(Source, "expected a JSON object");

  ActionSpace Space;
  Space.Name = Object->getString("name").value_or(Source).str();
  Space.Description = Object->getString("description").value_or("").str();
  Space.Prologue = Object->getString("prologue").value_or("").str();
  const json::Array *Actions = Object->getArray("actions");
  if (!Actions || Actions->empty() || Actions->size() > MaxActions)
    return malformed(Source, "expected 'actions', a list of 1 to " +
                                 Twine(MaxActions) + " actions");
  for (const auto &[Index, Item] : enumerate(*Actions)) {
    const json::Object *Action = Item.getAsObject();
    std::optional<StringRef> Name, Pipeline;
    if (Action) {
      Name = Action->getString("name");
      Pipeline = Action->getString("pipeline");
    }
    if (!Name || !Pipeline)
      return malformed(Source, "action " + Twine(Index) +
                                   ": expected an object with the strings "
                                   "'name' and 'pipeline'");
    Space.Actions.push_back({Name->str(), Pipeline->str()});
  }
  if (Error E = Space.checkPipelines(Source))
    return E;
  return Space;
}

Error ActionSpace::checkPipelines(StringRef Source) const {
  PassBuilder PB;
  auto Check = [&](const Twine &What, StringRef Pipeline) {
    ModulePassManager Passes;
    // Accept an empty pipeline, which is a valid action although LLVM rejects
    // it.
    if (Pipeline.empty())
      return Error::success();
    if (llvm::Error E = parsePipeline(PB, Passes, Pipeline))
      return Error(ErrorCode::InvalidArgument,
                   ("action space '" + Source + "': " + What + ": pipeline '" +
                    Pipeline + "': " + toString(std::move(E)))
                       .str());
    return Error::success();
  };
  if (Error E = Check("prologue", Prologue))
    return E;
  for (const auto &[Index, Action] : enumerate(Actions))
    if (Error E = Check("action " + Twine(Index) + " '" + Action.Name + "'",
                        Action.Pipeline))
      return E;
  return Error::success();
}

} // namespace MLBridge
