//===- ProtobufSerDes.cpp - Tensors as Protobuf messages ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The public class ProtobufSerDes, which chooses between the two forms of
/// messages.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"

#include "Protobuf/ProtobufForm.h"

using namespace MLBridge;
using protobuf::MessageType;

static constexpr std::string_view GenericName = "protobuf";

ProtobufSerDes::ProtobufSerDes()
    : ProtobufSerDes(std::string(GenericName),
                     std::make_unique<GenericForm>()) {}

ProtobufSerDes::ProtobufSerDes(std::string Name, std::unique_ptr<Form> Messages)
    : Name(std::move(Name)), Messages(std::move(Messages)) {}

ProtobufSerDes::~ProtobufSerDes() = default;

static std::string nameOf(const MessageType &Request,
                          const MessageType &Reply) {
  return std::string(GenericName) + ":" + Request.name() + "/" + Reply.name();
}

Expected<std::unique_ptr<ProtobufSerDes>>
ProtobufSerDes::create(std::shared_ptr<const MessageType> Request,
                       std::shared_ptr<const MessageType> Reply,
                       SerDes::Side Our) {
  for (const auto &Type : {Request, Reply})
    if (Error E = Type->error())
      return E;
  std::string Name = nameOf(*Request, *Reply);
  if (Our == SerDes::Side::Model)
    std::swap(Request, Reply);
  return std::unique_ptr<ProtobufSerDes>(new ProtobufSerDes(
      std::move(Name),
      std::make_unique<MessageForm>(std::move(Request), std::move(Reply))));
}

Expected<std::unique_ptr<ProtobufSerDes>>
ProtobufSerDes::create(const google::protobuf::Descriptor &Request,
                       const google::protobuf::Descriptor &Reply,
                       SerDes::Side Our) {
  return create(std::make_shared<const MessageType>(Request),
                std::make_shared<const MessageType>(Reply), Our);
}

void MLBridge::addProtobuf(SerDesFactory &Formats) {
  Formats.add<ProtobufSerDes>(
      std::string(GenericName),
      "the messages of mlcompilerbridge.proto: for peers in any language");
}

void MLBridge::addProtobuf(SerDesFactory &Formats,
                           const google::protobuf::Descriptor &Request,
                           const google::protobuf::Descriptor &Reply) {
  auto Asked = std::make_shared<const MessageType>(Request);
  auto Answered = std::make_shared<const MessageType>(Reply);
  Formats.add(
      {nameOf(*Asked, *Answered),
       "features as " + Asked->name() + ", advice as " + Answered->name(),
       [Asked,
        Answered](SerDes::Side Our) -> Expected<std::unique_ptr<BaseSerDes>> {
         return ProtobufSerDes::create(Asked, Answered, Our);
       }});
}

Expected<std::size_t> ProtobufSerDes::getMaxSerializedSize() {
  Expected<std::size_t> Size = Messages->prepare(Features);
  if (Size && *Size > protobuf::MaxMessage)
    return Error(ErrorCode::InvalidArgument,
                 "a Protobuf message of up to " + std::to_string(*Size) +
                     " bytes exceeds Protobuf's limit of 2 GiB");
  return Size;
}

Expected<std::size_t>
ProtobufSerDes::getSerializedData(Span<std::byte> Region) {
  Expected<std::size_t> Bound = getMaxSerializedSize();
  if (!Bound)
    return Bound;
  if (Region.size() < *Bound)
    return Error(ErrorCode::InvalidArgument,
                 "a message of up to " + std::to_string(*Bound) +
                     " bytes may not fit in a region of " +
                     std::to_string(Region.size()));
  return Messages->write(Features,
                         reinterpret_cast<std::uint8_t *>(Region.data()));
}

Span<const Span<const std::byte>> ProtobufSerDes::getSerializedPieces() {
  return Messages->pieces(Features);
}

std::uint64_t ProtobufSerDes::layout() const { return Messages->layout(); }

std::shared_ptr<const void> ProtobufSerDes::memory() const {
  return Messages->memory();
}

Expected<Span<const TensorView>>
ProtobufSerDes::deserializeUntyped(Span<const std::byte> Message,
                                   const AdviceSpec &) {
  if (Message.size() > protobuf::MaxMessage)
    return Error(ErrorCode::Malformed,
                 "Protobuf message: " + std::to_string(Message.size()) +
                     " bytes exceed Protobuf's limit of 2 GiB");
  return Messages->read(
      {reinterpret_cast<const char *>(Message.data()), Message.size()});
}
