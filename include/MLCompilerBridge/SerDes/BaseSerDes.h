//===- BaseSerDes.h - Converts tensors to messages and back -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines BaseSerDes, which converts a list of tensors to one message and
/// back. A SerDes does not depend on the transport. The model side in Python
/// uses the same C++ classes.
///
/// **To write a SerDes**, derive a class and override name(),
/// getMaxSerializedSize(), getSerializedData() and deserializeUntyped(), as
/// examples/own-serdes.cpp does. Messages come from other processes. Therefore,
/// deserializeUntyped() must return tensors or an Error for any bytes.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_BASESERDES_H
#define MLCOMPILERBRIDGE_SERDES_BASESERDES_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Extend/MessagePlacement.h"

#include <memory>
#include <vector>

namespace MLBridge {

/// Converts the messages of one session in both directions. Only one thread at
/// a time may use a SerDes.
class BaseSerDes {
public:
  static constexpr std::size_t Padding = MessagePlacement::Padding;
  static constexpr std::size_t MessageOffset = MessagePlacement::Offset;

  virtual ~BaseSerDes();

  /// Returns the format's name in model specs and in the handshake, such as
  /// "bitstream" or "json".
  virtual std::string_view name() const = 0;

  /// Adds a tensor to the next message. The tensor's data is borrowed until
  /// cleanUp().
  virtual void setFeature(const TensorView &Feature);
  /// Removes the tensors that setFeature() has added.
  virtual void cleanUp();

  /// Returns an upper bound on the size of the message, in bytes. Returns an
  /// error if the tensors cannot be serialized.
  virtual Expected<std::size_t> getMaxSerializedSize() = 0;
  /// Writes the message to \p Out and returns the number of bytes written.
  /// \p Out has room for getMaxSerializedSize() bytes and starts MessageOffset
  /// bytes after a 64-byte boundary.
  virtual Expected<std::size_t> getSerializedData(Span<std::byte> Out) = 0;
  /// Sets whether the memory passed to getSerializedData() still contains the
  /// last message, as shared memory does. If so, a format may skip the bytes
  /// that have not changed. The default is false.
  void setOutputIsKept(bool IsKept) { OutputIsKept = IsKept; }
  /// Returns the message in pieces that point to the tensors, so that a
  /// transport can send the pieces without copying a tensor. Returns no pieces
  /// if copying is faster. In that case, use getSerializedData(). Call
  /// getMaxSerializedSize() first. The pieces are valid until cleanUp().
  virtual Span<const Span<const std::byte>> getSerializedPieces() { return {}; }

  /// Decodes the reply \p Message, which is followed by Padding readable bytes.
  /// If the model failed or deferred (see ReplyNames), returns the
  /// corresponding Error. \p Wanted is a hint for formats that do not encode
  /// all types.
  ///
  /// The views point into the message or into this object. They are valid until
  /// the message's memory changes, or until the next call of deserialize() or
  /// deserializeRequest().
  Expected<Span<const TensorView>>
  deserialize(Span<const std::byte> Message,
              const AdviceSpec &Wanted = AdviceSpec::any());

  /// Decodes a request as deserialize() decodes a reply. But a tensor called
  /// `_error` does not become an Error, because an environment sends it as part
  /// of its message (see EnvironmentServer.h).
  Expected<Span<const TensorView>>
  deserializeRequest(Span<const std::byte> Message);

  /// Returns a number that identifies the layout of the last message. Two
  /// messages have the same number only if their tensors have the same names,
  /// types and shapes. Tensors whose data are outside the message (see
  /// memory()) must also have the same addresses. If the messages also have the
  /// same address, their views have the same pointers. Callers may then reuse
  /// objects that they made from the views. By default, every message has a new
  /// number.
  virtual std::uint64_t layout() const { return Messages; }
  /// If some views point to memory outside the message, returns an owner of
  /// that memory. Otherwise, returns null. The owner keeps the memory alive,
  /// but the next message overwrites the memory.
  virtual std::shared_ptr<const void> memory() const { return nullptr; }

  /// Returns whether deserialize() accepts a message that the peer can still
  /// modify. If true, deserialize() must copy all data that it reads more than
  /// once, because the peer may change the data between two reads. The views
  /// may only have element types for which every bit pattern is valid. If false
  /// (the default), deserialize() receives a private copy of the message.
  virtual bool readsSharedMemory() const { return false; }

  /// The kind of peer that receives the messages.
  enum class Dialect {
    Native,       ///< The peer uses this library.
    BareCompiler, ///< The peer is a foreign model on pipes without a handshake.
    BareModel, ///< The peer is a foreign compiler on pipes without a handshake.
  };
  /// Selects the dialect. The initial dialect is Native. Foreign peers, such as
  /// the reference implementation or LLVM's interactive model runner, need one
  /// of the other two dialects, which docs/reference/wire-format.md describes
  /// under "Bare mode". The default implementation ignores \p New, so all peers
  /// receive the same messages.
  virtual void setDialect(Dialect New);

protected:
  virtual Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) = 0;

  /// The tensors that setFeature() has added since the last cleanUp().
  std::vector<TensorView> Features;
  bool OutputIsKept = false;

private:
  /// The number of messages deserialized so far.
  std::uint64_t Messages = 0;
};

/// The reserved names of tensors in replies that are not advice.
struct ReplyNames {
  /// A string with the reason why the model failed. The reply becomes an error
  /// with ErrorCode::Model.
  static constexpr std::string_view Error = "_error";
  /// A string with the reason why the model leaves the decision to the
  /// compiler. The reply becomes an error with ErrorCode::Deferred.
  static constexpr std::string_view Deferred = "_deferred";
};

/// The formats that are always available. SerDesFactory creates a format from
/// its name.
struct SerDes {
  enum class Kind { Bitstream, JSON };
  static std::unique_ptr<BaseSerDes> create(Kind Format);

  /// The side of a session that uses the SerDes. The compiler's side writes
  /// features and reads advice. The model's side reads features and writes
  /// advice. Most formats treat both sides in the same way.
  enum class Side { Compiler, Model };
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_BASESERDES_H
