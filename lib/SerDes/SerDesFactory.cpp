//===- SerDesFactory.cpp - SerDes by name ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

#include "Core/AddByName.h"
#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "SerDes/Schema.h"

using namespace MLBridge;

SerDesFactory::SerDesFactory() {
  add<BitstreamSerDes>("bitstream",
                       "a line of JSON and the tensors' bytes: the fastest");
  add<JSONSerDes>("json", "one JSON object, readable by people too");
}

void SerDesFactory::add(Format NewFormat) {
  addByName(Formats, std::move(NewFormat));
}

Expected<std::unique_ptr<BaseSerDes>>
SerDesFactory::create(std::string_view Name, SerDes::Side Our) const {
  std::string Known;
  for (const Format &F : Formats) {
    if (F.Name == Name)
      return F.Make(Our);
    Known += (Known.empty() ? "" : ", ") + F.Name;
  }
  return Error(ErrorCode::InvalidArgument,
               "unknown SerDes " + serdes::quoted(Name) + "; known: " + Known);
}
