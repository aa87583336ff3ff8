//===- SignatureReader.cpp - Reads the signature of a SavedModel ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TF/SignatureReader.h"

#include "Support/PrintableText.h"

#include <algorithm>
#include <charconv>
#include <iterator>

using namespace MLBridge;
using namespace MLBridge::tf;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The values of tensorflow.DataType, in the order of ElementType.
static constexpr int DataTypes[] = {
    /*Int8*/ 6,  /*Int16*/ 5,   /*Int32*/ 3,   /*Int64*/ 9,
    /*UInt8*/ 4, /*UInt16*/ 17, /*UInt32*/ 22, /*UInt64*/ 23,
    /*Float*/ 1, /*Double*/ 2,  /*Bool*/ 10,   /*String*/ 7,
};
static_assert(std::size(DataTypes) == std::size_t(ElementType::String) + 1);

int tf::toTF(ElementType Type) {
  return DataTypes[static_cast<std::size_t>(Type)];
}

std::optional<ElementType> tf::fromTF(int Type) {
  for (std::size_t I = 0; I < std::size(DataTypes); ++I)
    if (DataTypes[I] == Type)
      return static_cast<ElementType>(I);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Protobuf's encoding
//===----------------------------------------------------------------------===//

namespace {

/// A field of a message. It contains a number or bytes.
struct Field {
  enum class Type : std::uint8_t {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5
  };

  std::uint64_t Number = 0;
  Type Kind = Type::Varint;
  std::uint64_t Value = 0;
  std::string_view Bytes;

  // These functions check the type, too. A field whose type is wrong for its
  // number is therefore skipped.
  bool isNumber(std::uint64_t Wanted) const {
    return Number == Wanted && Kind == Type::Varint;
  }
  bool isBytes(std::uint64_t Wanted) const {
    return Number == Wanted && Kind == Type::Bytes;
  }
};

/// Iterates over the fields of a message. It never reads beyond the end of the
/// message.
class Fields {
public:
  explicit Fields(std::string_view Message) : Rest(Message) {}

  /// Reads the next field. Returns false at the end, or if the message is
  /// invalid.
  bool next(Field &Out);
  bool isBroken() const { return Broken; }

private:
  bool readVarint(std::uint64_t &Out);
  bool take(std::uint64_t Size, std::string_view &Out);

  std::string_view Rest;
  bool Broken = false;
};

} // namespace

bool Fields::readVarint(std::uint64_t &Out) {
  Out = 0;
  for (unsigned Shift = 0; Shift < 64 && !Rest.empty(); Shift += 7) {
    auto Byte = static_cast<std::uint8_t>(Rest.front());
    Rest.remove_prefix(1);
    Out |= std::uint64_t(Byte & 0x7f) << Shift;
    if (Byte < 0x80)
      return true;
  }
  return false;
}

bool Fields::take(std::uint64_t Size, std::string_view &Out) {
  if (Size > Rest.size())
    return false;
  Out = Rest.substr(0, Size);
  Rest.remove_prefix(Size);
  return true;
}

bool Fields::next(Field &Out) {
  if (Rest.empty() || Broken)
    return false;
  std::uint64_t Tag = 0, Size = 0;
  Out = {};
  Broken = !readVarint(Tag);
  Out.Number = Tag >> 3;
  Out.Kind = static_cast<Field::Type>(Tag & 7);
  switch (Out.Kind) {
  case Field::Type::Varint:
    Broken |= !readVarint(Out.Value);
    break;
  case Field::Type::Fixed64:
    Broken |= !take(8, Out.Bytes);
    break;
  case Field::Type::Bytes:
    Broken |= !readVarint(Size) || !take(Size, Out.Bytes);
    break;
  case Field::Type::Fixed32:
    Broken |= !take(4, Out.Bytes);
    break;
  default: // TensorFlow's messages have no groups.
    Broken = true;
  }
  return !Broken;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

namespace {

class Reader {
public:
  explicit Reader(const std::string &What) : What(What) {}

  Expected<Signature> readMetaGraph(std::string_view Message,
                                    std::string_view Wanted);

private:
  Expected<Signature> readSignature(std::string_view Message);
  /// Reads an entry of the map of inputs or outputs.
  Expected<SignatureTensor> readEntry(std::string_view Message);
  Error readInfo(std::string_view Message, SignatureTensor &Out);
  Error readShape(std::string_view Message, SignatureTensor &Out);
  Error readExtent(std::string_view Message, SignatureTensor &Out);
  /// Parses the name of a tensor. For example, "dense:0" is output 0 of the
  /// operation "dense".
  Error setPlace(std::string_view Name, SignatureTensor &Out);

  Error malformed(const char *Where) const {
    return {ErrorCode::Malformed, What + ": " + Where + " is invalid"};
  }
  Error unsupported(const SignatureTensor &Of, const char *Found) const {
    return {ErrorCode::Unsupported,
            What + ": '" + printable(Of.Spec.Name) +
                "': expected a dense tensor of numbers or bools, found " +
                Found};
  }

  const std::string &What;
};

} // namespace

/// Reads the key and the value of a map's entry. Returns false if the entry is
/// invalid.
static bool readMapEntry(std::string_view Message, std::string_view &Key,
                         std::string_view &Value) {
  Fields Parts(Message);
  for (Field F; Parts.next(F);)
    if (F.isBytes(1))
      Key = F.Bytes;
    else if (F.isBytes(2))
      Value = F.Bytes;
  return !Parts.isBroken();
}

Expected<Signature> Reader::readMetaGraph(std::string_view Message,
                                          std::string_view Wanted) {
  Fields Parts(Message);
  std::string Names;
  for (Field F; Parts.next(F);) {
    if (!F.isBytes(5)) // signature_def
      continue;
    std::string_view Name, Found;
    if (!readMapEntry(F.Bytes, Name, Found))
      return malformed("its signature_def");
    if (Name == Wanted)
      return readSignature(Found);
    // Do not list signatures that are internal to TensorFlow. They have no
    // inputs.
    if (!Name.starts_with("__"))
      Names += (Names.empty() ? "" : ", ") + printable(Name);
  }
  if (Parts.isBroken())
    return malformed("its MetaGraphDef");
  return Error(ErrorCode::InvalidArgument,
               What + ": expected the signature '" + std::string(Wanted) +
                   "', found " + (Names.empty() ? "none" : printable(Names)));
}

Expected<Signature> Reader::readSignature(std::string_view Message) {
  Signature Out;
  Error OfOutputs;
  Fields Parts(Message);
  for (Field F; Parts.next(F);) {
    const bool IsInput = F.isBytes(1);
    if (!IsInput && !F.isBytes(2))
      continue;
    Expected<SignatureTensor> Tensor = readEntry(F.Bytes);
    if (Tensor)
      (IsInput ? Out.Inputs : Out.Outputs).push_back(std::move(*Tensor));
    else if (Error E = Tensor.takeError();
             IsInput || E.code() != ErrorCode::Unsupported)
      return E;
    else
      OfOutputs = std::move(E);
  }
  if (Parts.isBroken())
    return malformed("its SignatureDef");
  if (Out.Outputs.empty())
    return OfOutputs ? std::move(OfOutputs)
                     : Error(ErrorCode::Unsupported,
                             What + ": its signature has no outputs");
  // Sort the tensors, because the map is unordered.
  auto ByName = [](const SignatureTensor &A, const SignatureTensor &B) {
    return A.Spec.Name < B.Spec.Name;
  };
  std::ranges::sort(Out.Inputs, ByName);
  std::ranges::sort(Out.Outputs, ByName);
  return Out;
}

Expected<SignatureTensor> Reader::readEntry(std::string_view Message) {
  SignatureTensor Out;
  std::string_view Name, Info;
  if (!readMapEntry(Message, Name, Info))
    return malformed("its SignatureDef");
  Out.Spec.Name = std::string(Name);
  if (Error E = readInfo(Info, Out))
    return E;
  return Out;
}

Error Reader::readInfo(std::string_view Message, SignatureTensor &Out) {
  constexpr const char *OtherType = "another type";
  Fields Parts(Message);
  bool HasType = false;
  for (Field F; Parts.next(F);) {
    Error E;
    if (F.isBytes(1)) { // name
      E = setPlace(F.Bytes, Out);
    } else if (F.isNumber(2)) { // dtype
      std::optional<ElementType> Type = fromTF(static_cast<int>(F.Value));
      if (!Type || *Type == ElementType::String)
        return unsupported(Out, Type ? "strings" : OtherType);
      Out.Spec.Type = *Type;
      HasType = true;
    } else if (F.isBytes(3)) { // tensor_shape
      E = readShape(F.Bytes, Out);
    } else if (F.isBytes(4) || F.isBytes(5)) { // coo_sparse, composite_tensor
      return unsupported(Out, "a sparse or composite tensor");
    }
    if (E)
      return E;
  }
  if (Parts.isBroken())
    return malformed("a TensorInfo");
  // Protobuf omits empty fields and zeros, so check for missing fields. Type 0
  // is invalid.
  if (Out.Operation.empty())
    return malformed("the name of a tensor");
  return HasType ? Error::success() : unsupported(Out, OtherType);
}

Error Reader::readShape(std::string_view Message, SignatureTensor &Out) {
  Fields Parts(Message);
  for (Field F; Parts.next(F);) {
    if (F.isNumber(3) && F.Value != 0) // unknown_rank
      return unsupported(Out, "a tensor of any rank");
    if (!F.isBytes(2)) // dim
      continue;
    if (Error E = readExtent(F.Bytes, Out))
      return E;
  }
  return Parts.isBroken() ? malformed("a TensorShapeProto") : Error::success();
}

Error Reader::readExtent(std::string_view Message, SignatureTensor &Out) {
  std::int64_t Extent = 0;
  Fields Parts(Message);
  for (Field F; Parts.next(F);)
    if (F.isNumber(1)) // size
      Extent = static_cast<std::int64_t>(F.Value);
  if (Parts.isBroken())
    return malformed("a TensorShapeProto");
  if (!Out.Spec.Dims.push(std::max(Extent, TensorSpec::AnyExtent)))
    return unsupported(Out, "a tensor of rank above 8");
  return Error::success();
}

Error Reader::setPlace(std::string_view Name, SignatureTensor &Out) {
  std::size_t Colon = Name.rfind(':');
  if (Colon == std::string_view::npos || Colon == 0)
    return malformed("the name of a tensor");
  Out.Operation = std::string(Name.substr(0, Colon));
  const std::string_view Digits = Name.substr(Colon + 1);
  const char *End = Digits.data() + Digits.size();
  auto [Rest, Failure] = std::from_chars(End - Digits.size(), End, Out.Index);
  if (Failure != std::errc() || Rest != End || Digits.front() == '-')
    return malformed("the name of a tensor");
  return Error::success();
}

Expected<Signature> tf::readSignature(std::string_view MetaGraph,
                                      std::string_view Name,
                                      const std::string &What) {
  return Reader(What).readMetaGraph(MetaGraph, Name);
}
