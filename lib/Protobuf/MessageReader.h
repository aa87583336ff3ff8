//===- MessageReader.h - Reads user-defined messages ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MessageReader: reads user-defined messages for ProtobufSerDes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H

#include "Protobuf/GenericReader.h"
#include "Protobuf/MessageType.h"
#include "Protobuf/NestedReader.h"

#include <memory>

namespace MLBridge::protobuf {

/// Reads the fields of one message after another. The views of strings and of
/// packed, aligned elements point into the message. Other elements, and all
/// elements of messages in the message, are copied.
class MessageReader {
public:
  explicit MessageReader(std::shared_ptr<const MessageType> Type);

  Expected<Span<const TensorView>> read(std::string_view Message);
  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const;

private:
  /// The contents of one field.
  struct State {
    /// The elements of a repeated field. They may arrive in several parts. The
    /// store is allocated when it is first used.
    std::unique_ptr<serdes::ElementStore> Elements;
    /// The bytes that are read in place: a string, or a repeated field that
    /// consists of one part.
    std::string_view InPlace;
    std::size_t Count = 0;

    /// Returns the store. Clears it first if it contains the last message's
    /// elements.
    serdes::ElementStore &store();
    bool IsStored = false;
  };

  Error readMessage(std::string_view Message);
  Error takeField(const WireField &Wire, std::size_t Position);
  Error take(const WireField &Field, std::size_t Index);
  Error addViews();
  Error addView(std::size_t Index);

  std::shared_ptr<const MessageType> Type;
  std::vector<State> Found;
  /// The values of the fields that contain a single number.
  std::shared_ptr<std::uint64_t[]> Numbers;
  serdes::ElementStore Scratch;
  NestedReader Nested;
  GenericReader Reserved;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
