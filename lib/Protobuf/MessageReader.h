//===- MessageReader.h - A message of the user's to tensors -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reading half of ProtobufSerDes with messages of the user's own.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H

#include "Protobuf/GenericReader.h"
#include "Protobuf/MessageType.h"

#include <memory>

namespace MLBridge::protobuf {

/// The fields of one message after another: views into it where they are
/// strings, or packed and aligned there; else copies of the elements.
class MessageReader {
public:
  explicit MessageReader(std::shared_ptr<const MessageType> Type);

  Expected<Span<const TensorView>> read(std::string_view Message);
  std::uint64_t layout() const { return Tracker.layout(); }
  std::shared_ptr<const void> memory() const;

private:
  /// What was found of a field.
  struct State {
    /// The elements of a repeated field, which may come in many parts. Made
    /// when it is first needed.
    std::unique_ptr<serdes::ElementStore> Elements;
    /// Bytes that can stay where they are: of a string, or of a repeated
    /// field's first part, if that is the only one.
    std::string_view InPlace;
    std::size_t Count = 0;

    /// The store, without what is from the last message.
    serdes::ElementStore &store();
    bool IsStored = false;
  };

  Error readMessage(std::string_view Message);
  Error take(const WireField &Field, std::size_t Index);
  Error addViews();
  Error addView(std::size_t Index);

  std::shared_ptr<const MessageType> Type;
  std::vector<State> Found;
  /// The value of each field that is a single number.
  std::shared_ptr<std::uint64_t[]> Numbers;
  serdes::ElementStore Scratch;
  GenericReader Reserved;
  std::vector<TensorView> Views;
  LayoutTracker Tracker;
};

} // namespace MLBridge::protobuf

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_MESSAGEREADER_H
