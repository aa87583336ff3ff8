//===- ParseJSON.cpp - Parses untrusted JSON ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks the depth of the brackets before LLVM parses the text.
///
//===----------------------------------------------------------------------===//

#include "Support/ParseJSON.h"

using namespace llvm;

namespace MLBridge {

static constexpr unsigned MaxDepth = 16;

static bool isTooDeep(StringRef Text) {
  unsigned Depth = 0;
  bool InString = false;
  for (std::size_t At = 0; At < Text.size(); ++At) {
    const char C = Text[At];
    if (InString) {
      if (C == '\\')
        ++At;
      else if (C == '"')
        InString = false;
    } else if (C == '"') {
      InString = true;
    } else if (C == '[' || C == '{') {
      if (++Depth > MaxDepth)
        return true;
    } else if ((C == ']' || C == '}') && Depth > 0) {
      --Depth;
    }
  }
  return false;
}

llvm::Expected<json::Value> parseJSON(StringRef Text) {
  if (isTooDeep(Text))
    return createStringError("nested more than " + Twine(MaxDepth) + " deep");
  return json::parse(Text);
}

} // namespace MLBridge
