//===- JSONSerDes.h - Messages as JSON objects ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines JSONSerDes, a format for debugging and for peers that support only
/// JSON. A message is one JSON object that maps names of features to values.
/// The format preserves every value exactly, including 64-bit integers, NaN and
/// infinities. docs/reference/wire-format.md specifies every byte.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_JSONSERDES_H
#define MLCOMPILERBRIDGE_SERDES_JSONSERDES_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

namespace MLBridge {

class JSONSerDes final : public BaseSerDes {
public:
  JSONSerDes();
  ~JSONSerDes() override;

  std::string_view name() const override { return "json"; }
  Expected<std::size_t> getMaxSerializedSize() override;
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override;
  void setDialect(Dialect New) override;
  std::uint64_t layout() const override;
  std::shared_ptr<const void> memory() const override;

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) override;

private:
  class Writer;
  class Reader;
  std::unique_ptr<Writer> Out;
  std::unique_ptr<Reader> In;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_JSONSERDES_H
