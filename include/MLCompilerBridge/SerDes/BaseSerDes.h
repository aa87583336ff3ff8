//===- BaseSerDes.h - Tensors to bytes and back -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BaseSerDes: turns a list of tensors into one message and back (paper,
/// section 3.2). It knows nothing of transports. The model side uses the same
/// classes, through the Python module, so there is one codec, not two.
///
/// **To write one**, derive and override name(), getMaxSerializedSize(),
/// getSerializedData() and deserializeUntyped(), as examples/own-serdes.cpp
/// does. Messages come from other processes: whatever the bytes are,
/// deserializing must end in tensors or in an Error.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_BASESERDES_H
#define MLCOMPILERBRIDGE_SERDES_BASESERDES_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Extend/MessagePlacement.h"

#include <memory>
#include <vector>

namespace MLBridge {

/// Converts in both directions, for one session, used by one thread at a time.
class BaseSerDes {
public:
  static constexpr std::size_t Padding = MessagePlacement::Padding;
  static constexpr std::size_t MessageOffset = MessagePlacement::Offset;

  virtual ~BaseSerDes();

  /// "bitstream", "json": the name in a model spec and in a session's hello.
  virtual std::string_view name() const = 0;

  /// Adds a tensor to the next message. Borrowed until cleanUp().
  virtual void setFeature(const TensorView &Feature);
  /// Forgets the tensors set so far.
  virtual void cleanUp();

  /// An upper bound, in bytes, of what getSerializedData() will write.
  virtual Expected<std::size_t> getMaxSerializedSize() = 0;
  /// Writes the message to \p Out, which has room for
  /// getMaxSerializedSize() bytes and starts MessageOffset bytes behind a
  /// 64-byte boundary; returns the bytes written.
  virtual Expected<std::size_t> getSerializedData(Span<std::byte> Out) = 0;
  /// Whether the next getSerializedData() gets memory that holds what was
  /// written there before, as shared memory does. A format may then leave alone
  /// what would be the same. Not so at first.
  void setOutputIsKept(bool IsKept) { OutputIsKept = IsKept; }
  /// The same message as pieces that lie where they are, so that a transport
  /// which can gather them copies no tensor. None where there is nothing to be
  /// gained: then it has to be written. Comes after getMaxSerializedSize(), and
  /// is valid until cleanUp().
  virtual Span<const Span<const std::byte>> getSerializedPieces() { return {}; }

  /// The tensors in \p Message, which is followed by Padding readable bytes.
  /// The views point into the message or into this object: valid until the
  /// message's memory changes or the next deserialize(). A reply that reports
  /// the model's failure or that it defers (see ReplyNames) is returned as
  /// that Error. \p Wanted is a hint for formats that do not say all types.
  Expected<Span<const TensorView>>
  deserialize(Span<const std::byte> Message,
              const AdviceSpec &Wanted = AdviceSpec::any());

  /// The same of a request. Nothing in it takes the place of an answer: an
  /// `_error` there is an environment's (see EnvironmentServer.h), and a tensor
  /// like all others.
  Expected<Span<const TensorView>>
  deserializeQuestion(Span<const std::byte> Message);

  /// A number that two messages have in common only if their tensors are the
  /// same in names, types, shapes and, where they do not point into the
  /// message, addresses. While the message's address stays, too, so do the
  /// views: callers may reuse what they made of them. Unless overridden, every
  /// message has its own.
  virtual std::uint64_t layout() const { return Messages; }
  /// Keeps the memory alive that deserialized views use beside the message's;
  /// null when there is none. Its contents change all the same.
  virtual std::shared_ptr<const void> memory() const { return nullptr; }

  /// Whether deserialize() may be given a message in memory that its writer can
  /// still write to: then it copies what it looks at twice, and every value of
  /// the views' elements is a sound one. Else it gets a copy of all. Unless
  /// overridden, it may not.
  virtual bool readsSharedMemory() const { return false; }

  /// Whom the messages are for.
  enum class Dialect {
    Native,       ///< Our own other side.
    BareCompiler, ///< We ask a foreign model, on bare pipes.
    BareModel,    ///< We answer a foreign compiler, on bare pipes.
  };
  /// Bare dialects are what foreign peers (the reference implementation, LLVM's
  /// own channels) understand; see docs/wire-format.md. Native at first. Unless
  /// overridden, there is one dialect for all.
  virtual void setDialect(Dialect New);

protected:
  virtual Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) = 0;

  /// What setFeature() collected.
  std::vector<TensorView> Features;
  bool OutputIsKept = false;

private:
  /// How many have been deserialized.
  std::uint64_t Messages = 0;
};

/// Names that begin with an underscore are the protocol's own; these two are
/// the ways a reply can be something other than advice.
struct ReplyNames {
  /// A string: the model failed, in its own words. Becomes ErrorCode::Model.
  static constexpr std::string_view Error = "_error";
  /// A string: the model leaves the decision to the compiler, and why.
  static constexpr std::string_view Deferred = "_deferred";
};

/// The formats that are part of Core. SerDesFactory makes more, by name.
struct SerDes {
  enum class Kind { Bitstream, JSON };
  static std::unique_ptr<BaseSerDes> create(Kind Format);

  /// Who of the two sides we are. The compiler's side writes features and reads
  /// advice, the model's side the other way round; most formats need not care.
  enum class Side { Compiler, Model };
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_BASESERDES_H
