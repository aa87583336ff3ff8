//===- ResetOptions.cpp - A trainer's options for an episode --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the options key by key.
///
//===----------------------------------------------------------------------===//

#include "Support/ResetOptions.h"

#include "Support/ParseJSON.h"

using namespace llvm;

namespace MLBridge {

Error invalidResetOptions(const Twine &Why) {
  return {ErrorCode::InvalidArgument, ("the options of reset: " + Why).str()};
}

Error parseResetOptions(
    StringRef JSON,
    function_ref<Error(StringRef Key, const json::Value &)> Read) {
  if (JSON.empty())
    return Error::success();
  llvm::Expected<json::Value> Parsed = parseJSON(JSON);
  if (!Parsed)
    return invalidResetOptions("expected JSON: " +
                               toString(Parsed.takeError()));
  const json::Object *Object = Parsed->getAsObject();
  if (!Object)
    return invalidResetOptions("expected a JSON object");
  for (const auto &[Key, Value] : *Object)
    if (Error E = Read(Key, Value))
      return E;
  return Error::success();
}

Error readFileName(StringRef Key, const json::Value &Value, std::string &Into) {
  const std::optional<StringRef> Text = Value.getAsString();
  if (!Text || Text->empty())
    return invalidResetOptions("'" + Key + "': expected the name of a file");
  Into = Text->str();
  return Error::success();
}

} // namespace MLBridge
