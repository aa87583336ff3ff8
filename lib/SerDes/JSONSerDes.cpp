//===- JSONSerDes.cpp - Messages as JSON objects --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The public class JSONSerDes, which delegates to its Writer and its Reader.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/JSONSerDes.h"

#include "SerDes/JSONReader.h"
#include "SerDes/JSONWriter.h"

using namespace MLBridge;

JSONSerDes::JSONSerDes()
    : Out(std::make_unique<Writer>()), In(std::make_unique<Reader>()) {}

JSONSerDes::~JSONSerDes() = default;

Expected<std::size_t> JSONSerDes::getMaxSerializedSize() {
  return Out->prepare(Features);
}

Expected<std::size_t> JSONSerDes::getSerializedData(Span<std::byte> Region) {
  // Prepare again, because features may have been set or changed since
  // getMaxSerializedSize().
  Expected<std::size_t> Bound = Out->prepare(Features);
  if (!Bound)
    return Bound;
  if (Region.size() < *Bound)
    return Error(ErrorCode::InvalidArgument,
                 "a message of up to " + std::to_string(*Bound) +
                     " bytes may not fit in a region of " +
                     std::to_string(Region.size()));
  return Out->write(Features, reinterpret_cast<char *>(Region.data()));
}

void JSONSerDes::setDialect(Dialect New) {
  Out->setTypes(New == Dialect::Native);
}

std::uint64_t JSONSerDes::layout() const { return In->layout(); }

std::shared_ptr<const void> JSONSerDes::memory() const { return In->memory(); }

Expected<Span<const TensorView>>
JSONSerDes::deserializeUntyped(Span<const std::byte> Message,
                               const AdviceSpec &Wanted) {
  return In->read(Message, Wanted);
}
