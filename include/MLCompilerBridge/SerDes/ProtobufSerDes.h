//===- ProtobufSerDes.h - Tensors as Protobuf messages ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ProtobufSerDes, in the component MLCompilerBridge::Protobuf: requests and
/// replies as Protobuf messages, either the generic ones of
/// mlcompilerbridge.proto, which carry any tensors, or two user-defined ones,
/// whose fields are the features.
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
  /// Uses the generic messages; name() is "protobuf".
  ProtobufSerDes();

  /// Uses user-defined messages: each feature goes into the field of \p Request
  /// with its name, and the fields of \p Reply are the advice. name() is
  /// "protobuf:my.Features/my.Decision", so the handshake fails if the two
  /// sides use different messages.
  ///
  /// A field is a number, a bool, an enum (its number), a string, bytes (as
  /// uint8_t), or a repeated one of those (rank 1). Writing a message fails
  /// with SchemaMismatch if a feature has no field, a field has no feature
  /// (unless it is declared `optional`), the kinds differ, or the field cannot
  /// hold the value. Unsupported if a field is a message, a map or in a oneof.
  /// The descriptors may be destroyed after this call.
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

/// Adds "protobuf", the generic messages.
void addProtobuf(SerDesFactory &Formats);
/// Adds "protobuf:REQUEST/REPLY", a pair of user-defined messages.
void addProtobuf(SerDesFactory &Formats,
                 const google::protobuf::Descriptor &Request,
                 const google::protobuf::Descriptor &Reply);
template <typename RequestT, typename ReplyT>
void addProtobuf(SerDesFactory &Formats) {
  addProtobuf(Formats, *RequestT::descriptor(), *ReplyT::descriptor());
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_PROTOBUFSERDES_H
