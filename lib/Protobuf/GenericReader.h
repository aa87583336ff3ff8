//===- GenericReader.h - Reads tensors from generic messages ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the messages of mlcompilerbridge.proto for ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H

#include "Protobuf/LayoutTracker.h"
#include "Protobuf/Wire.h"

#include <vector>

namespace MLBridge::protobuf {

/// Reads the tensors of one message after another. Views point into the message
/// if its data is aligned; otherwise, and if elements are encoded one by one,
/// elements are copied.
class GenericReader {
public:
  /// The tensors of \p Message, an Observation or an Advice.
  Expected<Span<const TensorView>> read(std::string_view Message);

  // For tensors in a field of another message: call clear(), add() for each
  // tensor, and views().
  void clear();
  /// Adds the Tensor encoded in \p Bytes.
  Error add(std::string_view Bytes);
  Span<const TensorView> views();

  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const { return Store.memory(); }

private:
  /// The fields of a Tensor as transmitted.
  struct Parts {
    std::string_view Name;
    std::optional<std::uint64_t> Type;
    Shape Dims;
    bool HasShape = false;
    std::string_view Data;
    /// The number of the present field among Ints to Bools; 0 if all are
    /// absent.
    int Typed = 0;
    std::size_t NumStrings = 0;
    /// The last string.
    std::string_view String;

    bool hasData() const { return !Data.empty(); }
    bool hasStrings() const { return NumStrings != 0; }
  };
  /// A tensor. If its elements are in the store, they may still move.
  struct Slot {
    TensorView View;
    bool IsStored = false;
    std::size_t Offset = 0;
    std::size_t FirstLength = 0;
    std::size_t NumLengths = 0;
  };

  Error readMessage(std::string_view Message);
  static Expected<Parts> readParts(std::string_view Bytes);
  Error takeStrings(std::string_view Bytes, const Parts &P, Slot &Out);
  Error takeData(const Parts &P, Slot &Out);
  Error takeTyped(std::string_view Bytes, const Parts &P, Slot &Out);

  std::vector<Slot> Slots;
  serdes::ElementStore Store;
  /// Typed elements before their conversion to the tensor's type.
  serdes::ElementStore Scratch;
  std::vector<std::uint64_t> Converted;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
