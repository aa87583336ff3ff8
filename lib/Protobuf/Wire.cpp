//===- Wire.cpp - Fields of a Protobuf message ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/Wire.h"

#include <bit>
#include <cstring>

namespace MLBridge::protobuf {

FieldReader::Step FieldReader::next(WireField &Field) {
  for (;;) {
    std::uint32_t Tag = Input.ReadTag();
    if (Tag == 0)
      return Input.ConsumedEntireMessage() ? Step::End : Step::Broken;
    Field.Number = Format::GetTagFieldNumber(Tag);
    Field.Type = Format::GetTagWireType(Tag);
    if (Field.Number == 0)
      return Step::Broken;
    bool IsRead = false;
    switch (Field.Type) {
    case Format::WIRETYPE_VARINT:
      IsRead = Input.ReadVarint64(&Field.Bits);
      break;
    case Format::WIRETYPE_FIXED64:
      IsRead = Input.ReadLittleEndian64(&Field.Bits);
      break;
    case Format::WIRETYPE_FIXED32: {
      std::uint32_t Bits = 0;
      IsRead = Input.ReadLittleEndian32(&Bits);
      Field.Bits = Bits;
      break;
    }
    case Format::WIRETYPE_LENGTH_DELIMITED: {
      int Length = 0;
      if (!Input.ReadVarintSizeAsInt(&Length))
        return Step::Broken;
      std::string_view Rest = Message.substr(position());
      if (static_cast<std::size_t>(Length) > Rest.size())
        return Step::Broken;
      Field.Bytes = Rest.substr(0, static_cast<std::size_t>(Length));
      IsRead = Input.Skip(Length);
      break;
    }
    default:
      if (!Format::SkipField(&Input, Tag))
        return Step::Broken;
      continue;
    }
    return IsRead ? Step::Field : Step::Broken;
  }
}

std::string FieldReader::problem() const {
  return "cut short or not Protobuf at byte " + std::to_string(position()) +
         " of " + std::to_string(Message.size());
}

ElementType elementTypeOf(Format::FieldType Type) {
  switch (Type) {
  case Format::TYPE_INT32:
  case Format::TYPE_SINT32:
  case Format::TYPE_SFIXED32:
  case Format::TYPE_ENUM:
    return ElementType::Int32;
  case Format::TYPE_INT64:
  case Format::TYPE_SINT64:
  case Format::TYPE_SFIXED64:
    return ElementType::Int64;
  case Format::TYPE_UINT32:
  case Format::TYPE_FIXED32:
    return ElementType::UInt32;
  case Format::TYPE_UINT64:
  case Format::TYPE_FIXED64:
    return ElementType::UInt64;
  case Format::TYPE_FLOAT:
    return ElementType::Float;
  case Format::TYPE_DOUBLE:
    return ElementType::Double;
  case Format::TYPE_BOOL:
    return ElementType::Bool;
  case Format::TYPE_STRING:
    return ElementType::String;
  default:
    return ElementType::UInt8;
  }
}

//===----------------------------------------------------------------------===//
// Varints
//===----------------------------------------------------------------------===//

namespace {

/// Converts an element of type T to the 64 bits of a varint and back.
template <typename T> struct Plain {
  using Element = T;
  // Protobuf sign-extends a negative int32, so it needs ten bytes.
  static std::uint64_t toBits(T Value) {
    return static_cast<std::uint64_t>(Value);
  }
  static T fromBits(std::uint64_t Bits) { return static_cast<T>(Bits); }
};
struct Bool {
  using Element = std::uint8_t;
  static std::uint64_t toBits(std::uint8_t Value) { return Value; }
  static std::uint8_t fromBits(std::uint64_t Bits) { return Bits != 0; }
};
struct ZigZag32 {
  using Element = std::int32_t;
  static std::uint64_t toBits(std::int32_t Value) {
    return Format::ZigZagEncode32(Value);
  }
  static std::int32_t fromBits(std::uint64_t Bits) {
    return Format::ZigZagDecode32(static_cast<std::uint32_t>(Bits));
  }
};
struct ZigZag64 {
  using Element = std::int64_t;
  static std::uint64_t toBits(std::int64_t Value) {
    return Format::ZigZagEncode64(Value);
  }
  static std::int64_t fromBits(std::uint64_t Bits) {
    return Format::ZigZagDecode64(Bits);
  }
};

} // namespace

/// Calls \p Do with the coding of \p Type. Elements of \p Type must be varints.
template <typename F> static auto withCoding(Format::FieldType Type, F Do) {
  switch (Type) {
  case Format::TYPE_INT64:
    return Do(Plain<std::int64_t>());
  case Format::TYPE_UINT32:
    return Do(Plain<std::uint32_t>());
  case Format::TYPE_UINT64:
    return Do(Plain<std::uint64_t>());
  case Format::TYPE_SINT32:
    return Do(ZigZag32());
  case Format::TYPE_SINT64:
    return Do(ZigZag64());
  case Format::TYPE_BOOL:
    return Do(Bool());
  default:
    return Do(Plain<std::int32_t>());
  }
}

static bool isVarint(Format::FieldType Type) {
  return Format::WireTypeForFieldType(Type) == Format::WIRETYPE_VARINT;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool readNumbers(const WireField &Field, Format::FieldType Type,
                 serdes::ElementStore &Out) {
  std::size_t Size = elementSize(elementTypeOf(Type));
  if (!isVarint(Type)) {
    if (Field.hasBytes()) {
      Out.push(Field.Bytes.data(), Field.Bytes.size());
      return Field.Bytes.size() % Size == 0;
    }
    Out.push(&Field.Bits, Size);
    return Field.Type == Format::WireTypeForFieldType(Type);
  }
  return withCoding(Type, [&](auto Coding) {
    if (Field.Type == Format::WIRETYPE_VARINT)
      return Out.push(Coding.fromBits(Field.Bits)), true;
    if (!Field.hasBytes())
      return false;
    CodedInputStream Packed(
        reinterpret_cast<const std::uint8_t *>(Field.Bytes.data()),
        static_cast<int>(Field.Bytes.size()));
    const int End = static_cast<int>(Field.Bytes.size());
    while (Packed.CurrentPosition() != End) {
      std::uint64_t Bits = 0;
      if (!Packed.ReadVarint64(&Bits))
        return false;
      Out.push(Coding.fromBits(Bits));
    }
    return true;
  });
}

template <typename T> static T load(const void *Elements, std::size_t I) {
  T Value;
  std::memcpy(&Value, static_cast<const std::byte *>(Elements) + I * sizeof(T),
              sizeof(T));
  return Value;
}

std::size_t numbersSize(Format::FieldType Type, const void *Elements,
                        std::size_t Count) {
  if (!isVarint(Type))
    return Count * elementSize(elementTypeOf(Type));
  return withCoding(Type, [&](auto Coding) {
    std::size_t Size = 0;
    for (std::size_t I = 0; I < Count; ++I)
      Size += CodedOutputStream::VarintSize64(
          Coding.toBits(load<typename decltype(Coding)::Element>(Elements, I)));
    return Size;
  });
}

std::uint8_t *writeNumbers(Format::FieldType Type, const void *Elements,
                           std::size_t Count, std::uint8_t *Out) {
  if (!isVarint(Type)) {
    std::size_t Size = Count * elementSize(elementTypeOf(Type));
    if (Size != 0)
      std::memcpy(Out, Elements, Size);
    return Out + Size;
  }
  return withCoding(Type, [&](auto Coding) {
    for (std::size_t I = 0; I < Count; ++I)
      Out = CodedOutputStream::WriteVarint64ToArray(
          Coding.toBits(load<typename decltype(Coding)::Element>(Elements, I)),
          Out);
    return Out;
  });
}

} // namespace MLBridge::protobuf
