//===- MessageCheck.cpp - Checks of a message's tensors -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/MessageCheck.h"

#include "SerDes/Schema.h"

using namespace MLBridge;

MessageCheck::MessageCheck() : Last(std::make_unique<serdes::Schema>()) {}

MessageCheck::~MessageCheck() = default;

Error MessageCheck::operator()(Span<const TensorView> Tensors, ErrorCode Code) {
  if (Error E = Last->update(Tensors).takeError())
    return {Code, E.message()};
  for (const TensorView &Tensor : Tensors)
    if (Error E = serdes::checkElements(Tensor, Code))
      return E;
  return Error::success();
}
