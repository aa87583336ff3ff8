//===- BaseSerDes.cpp - Tensors to bytes and back -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The parts that all formats share: the tensors to send, and replies other
/// than advice.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "SerDes/Schema.h"
#include "Support/PrintableText.h"

using namespace MLBridge;

BaseSerDes::~BaseSerDes() = default;

void BaseSerDes::setFeature(const TensorView &Feature) {
  Features.push_back(Feature);
}

void BaseSerDes::cleanUp() { Features.clear(); }

void BaseSerDes::setDialect(Dialect) {}

/// Returns the error that \p Tensor represents. Returns success if the tensor's
/// name is not one of ReplyNames.
static Error errorIn(const TensorView &Tensor) {
  bool IsFailure = Tensor.Name == ReplyNames::Error;
  if (!IsFailure && Tensor.Name != ReplyNames::Deferred)
    return Error::success();
  if (Tensor.Type != ElementType::String || !Tensor.Dims.isScalar())
    return serdes::featureError(ErrorCode::Malformed, Tensor.Name,
                                "expected string, found " + Tensor.typeStr());
  // Limit the text, because the model's message may have any length.
  constexpr std::size_t MaxBytes = 4096;
  std::string Text = printable(Tensor.text(), MaxBytes);
  return IsFailure ? Error(ErrorCode::Model, std::move(Text))
                   : Error::deferred(std::move(Text));
}

Expected<Span<const TensorView>>
BaseSerDes::deserialize(Span<const std::byte> Message,
                        const AdviceSpec &Wanted) {
  ++Messages;
  Expected<Span<const TensorView>> Tensors =
      deserializeUntyped(Message, Wanted);
  if (!Tensors)
    return Tensors;
  for (const TensorView &Tensor : *Tensors)
    if (Error E = errorIn(Tensor))
      return E;
  return Tensors;
}

Expected<Span<const TensorView>>
BaseSerDes::deserializeRequest(Span<const std::byte> Message) {
  ++Messages;
  return deserializeUntyped(Message, AdviceSpec::any());
}

std::unique_ptr<BaseSerDes> SerDes::create(Kind Format) {
  switch (Format) {
  case Kind::Bitstream:
    return std::make_unique<BitstreamSerDes>();
  case Kind::JSON:
    return std::make_unique<JSONSerDes>();
  }
  return nullptr;
}
