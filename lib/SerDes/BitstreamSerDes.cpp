//===- BitstreamSerDes.cpp - A header line and raw tensors ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The public class BitstreamSerDes, which delegates to its Writer and its
/// Reader.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"

#include "SerDes/BitstreamReader.h"
#include "SerDes/BitstreamWriter.h"

using namespace MLBridge;

BitstreamSerDes::BitstreamSerDes()
    : Out(std::make_unique<Writer>()), In(std::make_unique<Reader>()) {}

BitstreamSerDes::~BitstreamSerDes() = default;

Expected<std::size_t> BitstreamSerDes::getMaxSerializedSize() {
  return Out->prepare(Features);
}

Expected<std::size_t>
BitstreamSerDes::getSerializedData(Span<std::byte> Region) {
  // Prepare again, because features may have been set or changed since
  // getMaxSerializedSize().
  Expected<std::size_t> Size = Out->prepare(Features);
  if (!Size)
    return Size;
  if (Region.size() < *Size)
    return Error(ErrorCode::InvalidArgument,
                 "a message of " + std::to_string(*Size) +
                     " bytes does not fit in a region of " +
                     std::to_string(Region.size()));
  return Out->write(Features, Region.data(), OutputIsKept);
}

Span<const Span<const std::byte>> BitstreamSerDes::getSerializedPieces() {
  return Out->pieces(Features);
}

void BitstreamSerDes::setDialect(Dialect New) {
  Out->setForm(New == Dialect::Native      ? Writer::Form::Native
               : New == Dialect::BareModel ? Writer::Form::BareReply
                                           : Writer::Form::BareRequest);
  In->setRaw(New == Dialect::BareCompiler);
}

std::uint64_t BitstreamSerDes::layout() const { return In->layout(); }

Expected<Span<const TensorView>>
BitstreamSerDes::deserializeUntyped(Span<const std::byte> Message,
                                    const AdviceSpec &Wanted) {
  return In->read(Message, Wanted);
}
