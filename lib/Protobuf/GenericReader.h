//===- GenericReader.h - Reads tensors from generic messages ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GenericReader: reads the messages of mlcompilerbridge.proto for
/// ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H

#include "Protobuf/LayoutTracker.h"
#include "Protobuf/Wire.h"

#include <vector>

namespace MLBridge::protobuf {

/// Reads the tensors of one message after another. If a tensor's data is
/// contiguous and aligned, its view points into the message. Otherwise, its
/// elements are copied.
class GenericReader {
public:
  /// Returns the tensors of \p Message, which is an Observation or an Advice.
  Expected<Span<const TensorView>> read(std::string_view Message);

  // To read tensors in a field of another message, call clear(), then add() for
  // each tensor, and then views().
  void clear();
  /// Adds the Tensor encoded in \p Bytes.
  Error add(std::string_view Bytes);
  Span<const TensorView> views();

  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const { return Store.memory(); }

private:
  /// The fields of a Tensor, as they were transmitted.
  struct Parts {
    std::string_view Name;
    std::optional<std::uint64_t> Type;
    Shape Dims;
    bool HasShape = false;
    std::string_view Data;
    /// The number of the field that contains typed elements, from Ints to
    /// Bools. It is 0 if no such field is present.
    int Typed = 0;
    std::size_t NumStrings = 0;
    /// The last string of the tensor.
    std::string_view String;

    bool hasData() const { return !Data.empty(); }
    bool hasStrings() const { return NumStrings != 0; }
  };
  /// A tensor that has been read. If its elements are in the store, their
  /// addresses may still change.
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
  /// Typed elements, before they are converted to the tensor's type.
  serdes::ElementStore Scratch;
  std::vector<std::uint64_t> Converted;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_GENERICREADER_H
