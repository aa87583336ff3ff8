//===- BaseSerDes.h - Tensors to bytes and back -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BaseSerDes: converts a list of tensors to one message and back (paper,
/// section 3.2), independently of the transport. The model side uses the same
/// classes through the Python module.
///
/// **To write one**, derive and override name(), getMaxSerializedSize(),
/// getSerializedData() and deserializeUntyped(), as examples/own-serdes.cpp
/// does. Messages come from other processes: deserializing any bytes must yield
/// tensors or an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_BASESERDES_H
#define MLCOMPILERBRIDGE_SERDES_BASESERDES_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Extend/MessagePlacement.h"

#include <memory>
#include <vector>

namespace MLBridge {

/// Converts both directions of one session. Used by one thread at a time.
class BaseSerDes {
public:
  static constexpr std::size_t Padding = MessagePlacement::Padding;
  static constexpr std::size_t MessageOffset = MessagePlacement::Offset;

  virtual ~BaseSerDes();

  /// The name in model specs and in the handshake: "bitstream", "json".
  virtual std::string_view name() const = 0;

  /// Adds a tensor to the next message. Its data is borrowed until cleanUp().
  virtual void setFeature(const TensorView &Feature);
  /// Removes the tensors set so far.
  virtual void cleanUp();

  /// An upper bound on the size of the message, in bytes. An error if the
  /// tensors cannot be serialized.
  virtual Expected<std::size_t> getMaxSerializedSize() = 0;
  /// Writes the message to \p Out, which has room for getMaxSerializedSize()
  /// bytes and starts MessageOffset bytes after a 64-byte boundary. Returns the
  /// number of bytes written.
  virtual Expected<std::size_t> getSerializedData(Span<std::byte> Out) = 0;
  /// Says whether the memory passed to getSerializedData() still holds what was
  /// last written there, as shared memory does. A format may then skip
  /// unchanged bytes. Default: false.
  void setOutputIsKept(bool IsKept) { OutputIsKept = IsKept; }
  /// The same message as pieces that point to the tensors, so that a transport
  /// that can gather them copies no tensor. Empty if gathering would not pay;
  /// then use getSerializedData(). Call getMaxSerializedSize() first. Valid
  /// until cleanUp().
  virtual Span<const Span<const std::byte>> getSerializedPieces() { return {}; }

  /// Decodes the reply \p Message, which is followed by Padding readable bytes.
  /// The views point into the message or into this object; they are valid until
  /// the message's memory changes or the next call of this function or of
  /// deserializeRequest(). If the model failed or deferred (see ReplyNames),
  /// returns that Error. \p Wanted is a hint for formats that do not encode all
  /// types.
  Expected<Span<const TensorView>>
  deserialize(Span<const std::byte> Message,
              const AdviceSpec &Wanted = AdviceSpec::any());

  /// Decodes a request. Unlike in a reply, a tensor called `_error` is returned
  /// like any other: environments send it (see EnvironmentServer.h).
  Expected<Span<const TensorView>>
  deserializeRequest(Span<const std::byte> Message);

  /// Identifies the layout of the last message: two messages have the same
  /// number only if their tensors have the same names, types, shapes and,
  /// unless they point into the message, addresses. If the message's address is
  /// the same as well, so are the views, and callers may reuse objects made
  /// from them. By default, every message has a new number.
  virtual std::uint64_t layout() const { return Messages; }
  /// An owner of the memory outside the message that the views point into; null
  /// if the views point only into the message. The owner keeps the memory
  /// alive, but the next message overwrites its contents.
  virtual std::shared_ptr<const void> memory() const { return nullptr; }

  /// Whether deserialize() accepts a message that its writer can still modify.
  /// If true, deserialize() must copy everything that it reads twice, and any
  /// bits must be a valid value of the views' elements. If false (the default),
  /// it receives a private copy of the message.
  virtual bool readsSharedMemory() const { return false; }

  /// The kind of peer that the messages are for.
  enum class Dialect {
    Native,       ///< A peer that uses this library.
    BareCompiler, ///< This side asks a foreign model, on bare pipes.
    BareModel,    ///< This side answers a foreign compiler, on bare pipes.
  };
  /// Selects the dialect. Foreign peers (the reference implementation, LLVM's
  /// own channels) understand the bare ones; see docs/reference/wire-format.md.
  /// The initial dialect is Native. By default, all peers get the same
  /// messages.
  virtual void setDialect(Dialect New);

protected:
  virtual Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) = 0;

  /// The tensors passed to setFeature() since the last cleanUp().
  std::vector<TensorView> Features;
  bool OutputIsKept = false;

private:
  /// The number of messages deserialized so far.
  std::uint64_t Messages = 0;
};

/// The reserved names of tensors that turn a reply into something other than
/// advice.
struct ReplyNames {
  /// A string: why the model failed. Becomes ErrorCode::Model.
  static constexpr std::string_view Error = "_error";
  /// A string: why the model leaves the decision to the compiler. Becomes
  /// ErrorCode::Deferred.
  static constexpr std::string_view Deferred = "_deferred";
};

/// The formats of the Core component. SerDesFactory creates formats by name.
struct SerDes {
  enum class Kind { Bitstream, JSON };
  static std::unique_ptr<BaseSerDes> create(Kind Format);

  /// Which side of a session uses the SerDes. The compiler's side writes
  /// features and reads advice, the model's side the reverse; most formats
  /// treat both alike.
  enum class Side { Compiler, Model };
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_BASESERDES_H
