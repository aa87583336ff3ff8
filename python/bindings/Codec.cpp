//===- Codec.cpp - The SerDes in Python -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts one message to bytes and back, for tests and tools. It uses the
/// same classes as a session.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "Formats.h"
#include "FromPython.h"
#include "ToPython.h"

#include <cstring>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <new>

namespace nb = nanobind;

namespace MLBridge::Python {

namespace {

/// Memory for one message, with the same layout as in a transport. The message
/// starts MessageOffset bytes after a 64-byte boundary, and padding follows it.
class MessageBuffer {
public:
  explicit MessageBuffer(std::size_t Size)
      : Memory(static_cast<std::byte *>(::operator new(
            BaseSerDes::MessageOffset + Size + BaseSerDes::Padding,
            Alignment))),
        Size(Size) {}

  Span<std::byte> message() const {
    return {Memory.get() + BaseSerDes::MessageOffset, Size};
  }

private:
  static constexpr std::align_val_t Alignment{64};
  struct Delete {
    void operator()(std::byte *P) const { ::operator delete(P, Alignment); }
  };
  std::unique_ptr<std::byte, Delete> Memory;
  std::size_t Size;
};

/// Describes a message: its format, and the side that writes or reads it.
struct MessageKind {
  std::string_view Format;
  std::string_view Side;
  bool IsBare;
  nb::handle Formats;
};

/// A message and its SerDes. Decoded tensors are views into the memory of the
/// message or of the SerDes.
struct Decoded {
  MessageBuffer Buffer;
  std::unique_ptr<BaseSerDes> Codec;
};

} // namespace

static std::unique_ptr<BaseSerDes> makeCodec(const MessageKind &Kind) {
  const bool IsModel = Kind.Side == "model";
  if (!IsModel && Kind.Side != "compiler")
    raise({ErrorCode::InvalidArgument,
           "side: expected 'model' or 'compiler', found '" +
               std::string(Kind.Side) + "'"});
  std::unique_ptr<BaseSerDes> Codec =
      valueOrRaise(formatsWith(Kind.Formats)
                       .create(Kind.Format, IsModel ? SerDes::Side::Model
                                                    : SerDes::Side::Compiler));
  if (Kind.IsBare)
    Codec->setDialect(IsModel ? BaseSerDes::Dialect::BareModel
                              : BaseSerDes::Dialect::BareCompiler);
  return Codec;
}

static nb::bytes serialize(const nb::dict &Tensors, std::string_view Format,
                           std::string_view Side, bool IsBare,
                           nb::handle Formats) {
  std::unique_ptr<BaseSerDes> Codec =
      makeCodec({Format, Side, IsBare, Formats});
  TensorsFromPython Set("tensor");
  for (auto [Name, Value] : Tensors) {
    nb::object Backing;
    Set.add(toText(Name, Backing), Value);
  }
  for (const TensorView &Tensor : Set.features().tensors())
    Codec->setFeature(Tensor);
  MessageBuffer Buffer(valueOrRaise(Codec->getMaxSerializedSize()));
  std::size_t Size = valueOrRaise(Codec->getSerializedData(Buffer.message()));
  return nb::bytes(Buffer.message().data(), Size);
}

static nb::dict deserialize(const nb::bytes &Message, std::string_view Format,
                            std::string_view Side, bool IsBare,
                            nb::handle Formats,
                            std::optional<std::string_view> Type, bool Many) {
  AdviceSpec Wanted = adviceSpecOf(Type, Many);
  auto Held = std::make_shared<Decoded>(
      Decoded{MessageBuffer(Message.size()),
              makeCodec({Format, Side, IsBare, Formats})});
  Span<std::byte> Bytes = Held->Buffer.message();
  if (!Bytes.empty())
    std::memcpy(Bytes.data(), Message.data(), Bytes.size());
  Span<const TensorView> Tensors = valueOrRaise(Held->Codec->deserialize(
      Span<const std::byte>(Bytes.data(), Bytes.size()), Wanted));
  nb::object Owner = ownerOf(Held);
  nb::dict ByName;
  for (const TensorView &Tensor : Tensors)
    ByName[toStr(Tensor.Name)] = Tensor.Type == ElementType::String
                                     ? textObject(Tensor)
                                     : viewArray(Tensor, Owner);
  return ByName;
}

void bindCodec(nb::module_ &M) {
  M.def("serialize", serialize, nb::arg("tensors"), nb::arg("serdes"),
        nb::arg("side"), nb::arg("bare") = false,
        nb::arg("formats") = nb::tuple(),
        nb::sig("def serialize(tensors: dict[str, typing.Any], serdes: str, "
                "side: str, bare: bool = False, formats: "
                "collections.abc.Sequence[Format] = ()) -> bytes"),
        "Encodes tensors as one message that the given side writes.");
  M.def("deserialize", deserialize, nb::arg("message"), nb::arg("serdes"),
        nb::arg("side"), nb::arg("bare") = false,
        nb::arg("formats") = nb::tuple(), nb::arg("type").none() = nb::none(),
        nb::arg("many") = false,
        nb::sig("def deserialize(message: bytes, serdes: str, side: str, bare: "
                "bool = False, formats: collections.abc.Sequence[Format] = (), "
                "type: str | None = None, many: bool = False) -> dict[str, "
                "typing.Any]"),
        "Decodes the tensors of one message that the given side reads.");
}

} // namespace MLBridge::Python
