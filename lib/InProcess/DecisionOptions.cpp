//===- DecisionOptions.cpp - Parses a spec's decision options -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Core/InvalidSpec.h"
#include "InProcess/ModelMetadata.h"
#include "MLCompilerBridge/Runners/InProcessModelRunner.h"
#include "Support/PrintableText.h"

#include <charconv>

using namespace MLBridge;
using namespace MLBridge::inprocess;

static constexpr std::string_view Names[] = {"decide", "output", "mask", "seed",
                                             "finite"};

Span<const std::string_view> DecisionOptions::names() { return Names; }

Expected<DecisionOptions> DecisionOptions::parse(const ModelSpec &Spec) {
  DecisionOptions Result;
  auto Wrong = [&](std::string_view Key, std::string_view Wanted) {
    return invalidSpec(Spec, "option '" + std::string(Key) + "': expected " +
                                 std::string(Wanted) + ", found '" +
                                 printable(Spec.option(Key, {})) + "'");
  };
  if (std::string_view Text = Spec.option("decide", {}); Text.data()) {
    Result.Decide = parseRule(Text);
    if (!Result.Decide)
      return Wrong("decide", "outputs, argmax or sample");
  }
  Result.Output = Spec.option("output", {});
  Result.Mask = Spec.option("mask", {});
  if (std::string_view Text = Spec.option("seed", {}); Text.data()) {
    auto [End, Status] =
        std::from_chars(Text.data(), Text.data() + Text.size(), Result.Seed);
    if (Status != std::errc() || End != Text.data() + Text.size())
      return Wrong("seed", "a number from 0 to 2^64 - 1");
  }
  if (std::string_view Text = Spec.option("finite", {}); Text.data()) {
    if (Text != "true" && Text != "false")
      return Wrong("finite", "true or false");
    Result.RefuseNonFinite = Text == "true";
  }
  return Result;
}
