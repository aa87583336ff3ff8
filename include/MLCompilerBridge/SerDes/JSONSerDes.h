//===- JSONSerDes.h - One JSON object a message -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONSerDes: one JSON object from feature name to value, for peers that
/// support only JSON and for debugging. It preserves every value exactly:
/// 64-bit integers, floats, NaN and infinities, UTF-8.
/// docs/reference/wire-format.md specifies every byte.
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
