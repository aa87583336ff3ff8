//===- JSONReader.h - Reads JSON messages -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSONSerDes::Reader: reads JSON messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_JSONREADER_H
#define MLCOMPILERBRIDGE_LIB_SERDES_JSONREADER_H

#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "SerDes/JSONTypes.h"
#include "SerDes/JSONValue.h"

namespace MLBridge {

class JSONSerDes::Reader {
public:
  /// Returns the tensors in \p Message. Their elements are copied to the
  /// reader's memory.
  Expected<Span<const TensorView>> read(Span<const std::byte> Message,
                                        const AdviceSpec &Wanted);
  std::uint64_t layout() const { return Layout; }
  std::shared_ptr<const void> memory() const { return Store.memory(); }

private:
  struct Slot {
    std::string Name;
    serdes::StoredTensor Tensor;
  };
  enum class Pass {
    Complete,
    /// "_types" followed a feature. The types have now been read, but the
    /// features must be read again.
    LateTypes,
    /// A value does not have the type that the caller requested.
    UnwantedType,
  };

  Expected<Pass> readFields(serdes::ondemand::document &Document,
                            const AdviceSpec &Wanted);
  Expected<Pass> readFeature(std::string_view Name,
                             serdes::ondemand::value Value,
                             const AdviceSpec &Wanted);
  Error checkMessage();
  void makeViews();

  serdes::JSONParser Parser;
  serdes::JSONTypes Types;
  bool HaveTypes = false;
  /// The first Count elements are the message's features. The remaining
  /// elements are kept only so that their memory can be reused.
  std::vector<Slot> Slots;
  std::size_t Count = 0;
  serdes::ElementStore Store;
  std::vector<TensorView> Views;
  serdes::DuplicateFinder Duplicates;
  /// The number of slots at the beginning whose names are known to be distinct.
  std::size_t NumDistinct = 0;
  /// True if a name, type, shape or address differs from the last message.
  bool Changed = false;
  std::uint64_t Layout = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_SERDES_JSONREADER_H
