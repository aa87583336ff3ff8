//===- ModelMetadata.cpp - Reads a model's metadata -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/ModelMetadata.h"

#include "InProcess/TensorSpecParser.h"
#include "Support/PrintableText.h"

#include <simdjson.h>

#include <algorithm>

using namespace MLBridge;
using namespace MLBridge::inprocess;

namespace dom = simdjson::dom;
using Rule = DecisionOptions::Rule;

static Error malformed(const Model &M, std::string_view Key,
                       const std::string &Why) {
  return {ErrorCode::Malformed,
          M.name() + ": its metadata '" + std::string(Key) + "': " + Why};
}

//===----------------------------------------------------------------------===//
// Rules and flags
//===----------------------------------------------------------------------===//

std::optional<Rule> inprocess::parseRule(std::string_view Name) {
  if (Name == "outputs")
    return Rule::Outputs;
  if (Name == "argmax")
    return Rule::ArgMax;
  if (Name == "sample")
    return Rule::Sample;
  return std::nullopt;
}

Expected<DefaultDecision> inprocess::defaultDecision(const Model &M) {
  constexpr std::string_view Key = "mlbridge.decide";
  const std::string *Text = M.metadata(Key);
  if (!Text)
    return DefaultDecision();
  std::size_t Colon = std::min(Text->find(':'), Text->size());
  std::optional<Rule> Found = parseRule(Text->substr(0, Colon));
  if (!Found)
    return malformed(M, Key,
                     "expected outputs, argmax or sample, optionally followed "
                     "by a colon and the name of an output, found '" +
                         printable(*Text) + "'");
  return DefaultDecision{
      *Found, Colon == Text->size() ? std::string() : Text->substr(Colon + 1)};
}

Expected<bool> inprocess::refusesNonFinite(const Model &M) {
  constexpr std::string_view Key = "mlbridge.finite";
  const std::string *Text = M.metadata(Key);
  if (!Text || *Text == "false")
    return false;
  if (*Text == "true")
    return true;
  return malformed(M, Key,
                   "expected true or false, found '" + printable(*Text) + "'");
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

Expected<std::vector<TensorSpec>> inprocess::otherFeatures(const Model &M) {
  constexpr std::string_view Key = "mlbridge.features";
  std::vector<TensorSpec> Others;
  const std::string *Text = M.metadata(Key);
  if (!Text)
    return Others;

  dom::parser Parser;
  dom::array List;
  if (simdjson::error_code Code = Parser.parse(*Text).get(List))
    return malformed(M, Key,
                     std::string("expected a JSON list: ") +
                         simdjson::error_message(Code));
  TensorSpecParser Tensors;
  for (dom::element Item : List) {
    Expected<TensorSpec> Feature = Tensors.parse(Item);
    if (!Feature)
      return malformed(M, Key, "feature " + Feature.takeError().message());
    const TensorSpec *Input = nullptr;
    for (const TensorSpec &Candidate : M.inputs())
      if (Candidate.Name == Feature->Name)
        Input = &Candidate;
    if (!Input)
      Others.push_back(std::move(*Feature));
    else if (Input->Type != Feature->Type)
      return malformed(M, Key,
                       "feature '" + printable(Feature->Name) + "' is " +
                           Feature->typeStr() + ", but the graph takes " +
                           Input->typeStr());
  }
  return Others;
}
