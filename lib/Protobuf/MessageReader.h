//===- MessageReader.h - Reads tensors from user-defined messages -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads user-defined messages for ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H

#include "Protobuf/GenericReader.h"
#include "Protobuf/MessageType.h"

#include <memory>

namespace MLBridge::protobuf {

/// Reads the fields of one message after another. Views point into the message
/// for strings and for packed, aligned elements; other elements are copied.
class MessageReader {
public:
  explicit MessageReader(std::shared_ptr<const MessageType> Type);

  Expected<Span<const TensorView>> read(std::string_view Message);
  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const;

private:
  /// The contents of a field.
  struct State {
    /// The elements of a repeated field, which may arrive in several parts.
    /// Allocated on first use.
    std::unique_ptr<serdes::ElementStore> Elements;
    /// Bytes that are read in place: those of a string, or of a repeated field
    /// with one part.
    std::string_view InPlace;
    std::size_t Count = 0;

    /// The store, cleared if it holds the last message's elements.
    serdes::ElementStore &store();
    bool IsStored = false;
  };

  Error readMessage(std::string_view Message);
  Error take(const WireField &Field, std::size_t Index);
  Error addViews();
  Error addView(std::size_t Index);

  std::shared_ptr<const MessageType> Type;
  std::vector<State> Found;
  /// The values of fields with a single number.
  std::shared_ptr<std::uint64_t[]> Numbers;
  serdes::ElementStore Scratch;
  GenericReader Reserved;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
