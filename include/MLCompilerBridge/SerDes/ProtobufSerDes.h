//===- ProtobufSerDes.h - Tensors as Protobuf messages ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ProtobufSerDes, which encodes requests and replies as Protobuf
/// messages. The generic messages of mlcompilerbridge.proto can contain any
/// tensors. Alternatively, users define two messages whose fields are the
/// features and the advice. This class is in the component
/// MLCompilerBridge::Protobuf.
/// \code
///   RunnerFactory Factory;
///   addProtobuf(Factory.formats());
///   addProtobuf<my::Features, my::Decision>(Factory.formats());
///   Factory.create("pipe:/tmp/advisor?serdes=protobuf");
///   Factory.create("pipe:/tmp/advisor?serdes=protobuf:my.Features/my.Decision");
/// \endcode
/// docs/reference/wire-format.md, section Protobuf, specifies every byte.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_PROTOBUFSERDES_H
#define MLCOMPILERBRIDGE_SERDES_PROTOBUFSERDES_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace google::protobuf {
class Descriptor;
} // namespace google::protobuf

namespace MLBridge {

namespace protobuf {
class MessageType;
} // namespace protobuf

class ProtobufSerDes final : public BaseSerDes {
public:
  /// Creates a SerDes for the generic messages. Its name() is "protobuf".
  ProtobufSerDes();

  /// Creates a SerDes for user-defined messages. Each feature is written to the
  /// field of \p Request that has its name. The fields of \p Reply are the
  /// advice. The name() contains both message names, as in
  /// "protobuf:my.Features/my.Decision", so the handshake fails if the two
  /// sides use different messages.
  ///
  /// A field can be a number, a bool, an enum, a string, bytes, a message or a
  /// map. It can be in a oneof. It can be repeated unless its type is bytes. An
  /// enum is read as its number, and written from its number or its name. Bytes
  /// are elements of type uint8_t, and a repeated field has rank 1. A field of
  /// a nested message is a feature whose name is the field's path. For example,
  /// "graph.nodes[].weight" contains the weights of all nodes.
  /// docs/reference/wire-format.md describes these names. Returns Unsupported
  /// if a message contains itself, is inside more than 16 messages, or has a
  /// field of another kind. The caller may destroy the descriptors afterwards.
  ///
  /// Writing a message fails with SchemaMismatch in these cases:
  /// - The message has no field for a feature.
  /// - A field has no feature, and is neither declared `optional` nor in a
  /// oneof.
  /// - A feature and its field have different kinds of types.
  /// - A field cannot hold a feature's value.
  /// - Two features disagree on the number of messages in a repeated field.
  /// - Two fields of a oneof are set, or a map has the same key twice.
  static Expected<std::unique_ptr<ProtobufSerDes>>
  create(const google::protobuf::Descriptor &Request,
         const google::protobuf::Descriptor &Reply, SerDes::Side Our);

  ~ProtobufSerDes() override;

  std::string_view name() const override { return Name; }
  Expected<std::size_t> getMaxSerializedSize() override;
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override;
  Span<const Span<const std::byte>> getSerializedPieces() override;
  std::uint64_t layout() const override;
  std::shared_ptr<const void> memory() const override;

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) override;

private:
  class Form;
  class GenericForm;
  class MessageForm;
  ProtobufSerDes(std::string Name, std::unique_ptr<Form> Messages);
  static Expected<std::unique_ptr<ProtobufSerDes>>
  create(std::shared_ptr<const protobuf::MessageType> Request,
         std::shared_ptr<const protobuf::MessageType> Reply, SerDes::Side Our);

  friend void addProtobuf(SerDesFactory &Formats,
                          const google::protobuf::Descriptor &Request,
                          const google::protobuf::Descriptor &Reply);

  std::string Name;
  std::unique_ptr<Form> Messages;
};

/// Adds the format "protobuf" for the generic messages.
void addProtobuf(SerDesFactory &Formats);
/// Adds the format "protobuf:REQUEST/REPLY" for two user-defined messages.
void addProtobuf(SerDesFactory &Formats,
                 const google::protobuf::Descriptor &Request,
                 const google::protobuf::Descriptor &Reply);
template <typename RequestT, typename ReplyT>
void addProtobuf(SerDesFactory &Formats) {
  addProtobuf(Formats, *RequestT::descriptor(), *ReplyT::descriptor());
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_PROTOBUFSERDES_H
