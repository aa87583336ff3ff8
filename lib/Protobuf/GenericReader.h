//===- GenericReader.h - A generic message to tensors -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reading half of ProtobufSerDes with the messages of
/// mlcompilerbridge.proto.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H

#include "Protobuf/LayoutTracker.h"
#include "Protobuf/Wire.h"

#include <vector>

namespace MLBridge::protobuf {

/// The tensors of one message after another: views into it where their data is
/// aligned there, copies of the elements where it is not, or where they are
/// encoded one by one.
class GenericReader {
public:
  /// The tensors of \p Message, an Observation or an Advice.
  Expected<Span<const TensorView>> read(std::string_view Message);

  // The same for the tensors in a field of another message: clear(), add() for
  // each, then views().
  void clear();
  /// Adds the Tensor that \p Bytes encode.
  Error add(std::string_view Bytes);
  Span<const TensorView> views();

  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const { return Store.memory(); }

private:
  /// A Tensor's fields, as they were found.
  struct Parts {
    std::string_view Name;
    std::optional<std::uint64_t> Type;
    Shape Dims;
    bool HasShape = false;
    std::string_view Data;
    /// Of the fields from Ints to Bools, the one that is there; 0 for none.
    int Typed = 0;
    std::size_t NumStrings = 0;
    /// The last of them.
    std::string_view String;

    bool hasData() const { return !Data.empty(); }
    bool hasStrings() const { return NumStrings != 0; }
  };
  /// A tensor, whose elements may still move if they are in the store.
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
  /// Typed elements, before they are what the tensor's type says.
  serdes::ElementStore Scratch;
  std::vector<std::uint64_t> Converted;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
