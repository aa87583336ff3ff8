//===- ProtobufForm.h - Generic and user-defined messages -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ProtobufSerDes::Form: converts tensors to messages and back. One subclass is
/// for the generic messages and one is for user-defined messages.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_PROTOBUF_PROTOBUFFORM_H
#define MLCOMPILERBRIDGE_LIB_PROTOBUF_PROTOBUFFORM_H

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#include "Protobuf/GenericReader.h"
#include "Protobuf/GenericWriter.h"
#include "Protobuf/MessageReader.h"
#include "Protobuf/MessageWriter.h"

namespace MLBridge {

class ProtobufSerDes::Form {
public:
  virtual ~Form() = default;

  /// Checks \p Features. Returns an upper bound on the size of the message in
  /// bytes.
  virtual Expected<std::size_t> prepare(Span<const TensorView> Features) = 0;
  /// Writes the message of the last prepare() to \p Out. Returns the message's
  /// size in bytes.
  virtual std::size_t write(Span<const TensorView> Features,
                            std::uint8_t *Out) = 0;
  virtual Span<const Span<const std::byte>>
  pieces(Span<const TensorView> Features) = 0;
  virtual Expected<Span<const TensorView>> read(std::string_view Message) = 0;
  virtual std::uint64_t layout() const = 0;
  virtual std::shared_ptr<const void> memory() const = 0;
};

/// The generic form: the messages Observation and Advice of
/// mlcompilerbridge.proto.
class ProtobufSerDes::GenericForm final : public Form {
public:
  Expected<std::size_t> prepare(Span<const TensorView> Features) override {
    return Out.prepare(Features);
  }
  std::size_t write(Span<const TensorView> Features,
                    std::uint8_t *To) override {
    return static_cast<std::size_t>(Out.write(Features, To) - To);
  }
  Span<const Span<const std::byte>>
  pieces(Span<const TensorView> Features) override {
    return Out.pieces(Features);
  }
  Expected<Span<const TensorView>> read(std::string_view Message) override {
    return In.read(Message);
  }
  std::uint64_t layout() const override { return In.layout(); }
  std::shared_ptr<const void> memory() const override { return In.memory(); }

private:
  protobuf::GenericWriter Out;
  protobuf::GenericReader In;
};

/// The form with two user-defined messages, one for requests and one for
/// replies.
class ProtobufSerDes::MessageForm final : public Form {
public:
  MessageForm(std::shared_ptr<const protobuf::MessageType> Written,
              std::shared_ptr<const protobuf::MessageType> Read)
      : Out(std::move(Written)), In(std::move(Read)) {}

  Expected<std::size_t> prepare(Span<const TensorView> Features) override {
    return Out.prepare(Features);
  }
  std::size_t write(Span<const TensorView> Features,
                    std::uint8_t *To) override {
    return static_cast<std::size_t>(Out.write(Features, To) - To);
  }
  Span<const Span<const std::byte>> pieces(Span<const TensorView>) override {
    return {};
  }
  Expected<Span<const TensorView>> read(std::string_view Message) override {
    return In.read(Message);
  }
  std::uint64_t layout() const override { return In.layout(); }
  std::shared_ptr<const void> memory() const override { return In.memory(); }

private:
  protobuf::MessageWriter Out;
  protobuf::MessageReader In;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_LIB_PROTOBUF_PROTOBUFFORM_H
