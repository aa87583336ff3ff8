//===- ModelSignature.cpp - Parses a model's inputs and outputs -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/ModelSignature.h"

#include "InProcess/TensorSpecParser.h"
#include "Support/PrintableText.h"

using namespace MLBridge;
using namespace MLBridge::inprocess;

namespace dom = simdjson::dom;

static Error malformedSignature(const std::string &Why) {
  return {ErrorCode::Malformed, "model signature: " + Why};
}

static Error parseTensors(const dom::object &Root, std::string_view Key,
                          TensorSpecParser &Parser,
                          std::vector<TensorSpec> &Specs) {
  dom::array List;
  if (Root[Key].get(List))
    return malformedSignature("expected a list \"" + std::string(Key) + "\"");
  for (dom::element Item : List) {
    Expected<TensorSpec> Spec = Parser.parse(Item);
    if (!Spec)
      return malformedSignature(std::string(Key) + ": " +
                                Spec.takeError().message());
    for (const TensorSpec &Other : Specs)
      if (Other.Name == Spec->Name)
        return malformedSignature(std::string(Key) + ": '" +
                                  printable(Spec->Name) + "' appears twice");
    Specs.push_back(std::move(*Spec));
  }
  return Error::success();
}

Expected<ModelSignature> ModelSignature::parse(std::string_view JSON) {
  dom::parser Parser;
  dom::object Root;
  if (simdjson::error_code Code =
          Parser.parse(JSON.data(), JSON.size()).get(Root))
    return malformedSignature(std::string("expected a JSON object: ") +
                              simdjson::error_message(Code));
  ModelSignature Signature;
  TensorSpecParser Tensors;
  if (Error E = parseTensors(Root, "inputs", Tensors, Signature.Inputs))
    return E;
  if (Error E = parseTensors(Root, "outputs", Tensors, Signature.Outputs))
    return E;
  dom::element About;
  if (Root["metadata"].get(About))
    return Signature;
  dom::object Pairs;
  if (About.get(Pairs))
    return malformedSignature("expected \"metadata\" to be an object");
  for (const dom::key_value_pair Pair : Pairs) {
    std::string_view Text;
    if (Pair.value.get(Text))
      return malformedSignature("metadata '" + printable(Pair.key) +
                                "': expected a string");
    Signature.About.emplace_back(Pair.key, Text);
  }
  return Signature;
}

Expected<ModelSignature>
ModelSignature::parseNumeric(std::string_view JSON, const std::string &Name,
                             std::string_view RuntimeName) {
  Expected<ModelSignature> Signature = parse(JSON);
  if (!Signature) {
    Error E = Signature.takeError();
    return Error(E.code(), Name + ": " + E.message());
  }
  for (const auto *Specs : {&Signature->Inputs, &Signature->Outputs})
    for (const TensorSpec &S : *Specs)
      if (S.Type == ElementType::String)
        return Error(ErrorCode::Unsupported,
                     Name + ": '" + printable(S.Name) +
                         "': " + std::string(RuntimeName) +
                         " does not support strings");
  return Signature;
}
