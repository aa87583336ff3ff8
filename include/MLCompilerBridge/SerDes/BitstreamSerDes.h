//===- BitstreamSerDes.h - A JSON line and raw tensors ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines BitstreamSerDes, the fastest format. A message is one line of JSON
/// that describes the tensors, followed by their bytes. LLVM's training logs
/// and the reference implementation also use this format.
/// docs/reference/wire-format.md specifies every byte.
///
/// While the names, types and shapes do not change, the writer copies the
/// previous line of JSON, and the reader only compares the new line with the
/// previous line.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_BITSTREAMSERDES_H
#define MLCOMPILERBRIDGE_SERDES_BITSTREAMSERDES_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

namespace MLBridge {

class BitstreamSerDes final : public BaseSerDes {
public:
  BitstreamSerDes();
  ~BitstreamSerDes() override;

  std::string_view name() const override { return "bitstream"; }
  Expected<std::size_t> getMaxSerializedSize() override;
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override;
  Span<const Span<const std::byte>> getSerializedPieces() override;
  void setDialect(Dialect New) override;

  std::uint64_t layout() const override;
  bool readsSharedMemory() const override { return true; }

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

#endif // MLCOMPILERBRIDGE_SERDES_BITSTREAMSERDES_H
