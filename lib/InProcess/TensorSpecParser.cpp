//===- TensorSpecParser.cpp - Parses TensorSpecs from JSON ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/TensorSpecParser.h"

#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;
using namespace MLBridge::inprocess;

namespace dom = simdjson::dom;

static Error malformedSpec(const std::string &Why) {
  return {ErrorCode::Malformed, Why};
}

Expected<std::int64_t> TensorSpecParser::parseExtent(dom::element Item) {
  if (Item.is_null())
    return TensorSpec::AnyExtent;
  std::string_view Name;
  if (!Item.get(Name)) {
    auto Found = std::ranges::find(Names, Name);
    if (Found == Names.end())
      Found = Names.insert(Found, std::string(Name));
    return TensorSpec::AnyExtent - 1 - (Found - Names.begin());
  }
  std::int64_t Extent;
  if (Item.get(Extent))
    return malformedSpec("an extent is an integer, null or a name");
  return std::max(Extent, TensorSpec::AnyExtent);
}

Expected<TensorSpec> TensorSpecParser::parse(dom::element Item) {
  std::string_view Name, TypeName;
  if (Item["name"].get(Name))
    return malformedSpec("expected each tensor to have a \"name\"");
  auto Wrong = [&](const std::string &Why) {
    return malformedSpec("'" + printable(Name) + "': " + Why);
  };
  if (Item["type"].get(TypeName))
    return Wrong("expected a \"type\"");
  std::optional<ElementType> Type = parseElementType(TypeName);
  if (!Type)
    return Wrong("unknown type '" + printable(TypeName) + "'");
  dom::array Extents;
  if (Item["shape"].get(Extents))
    return Wrong("expected a \"shape\"");

  TensorSpec Spec{std::string(Name), *Type, {}};
  for (dom::element Each : Extents) {
    Expected<std::int64_t> Extent = parseExtent(Each);
    if (!Extent)
      return Wrong(Extent.takeError().message());
    if (!Spec.Dims.push(*Extent))
      return Wrong("expected a rank of at most " +
                   std::to_string(Shape::MaxRank));
  }
  return Spec;
}
