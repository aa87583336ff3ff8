//===- FlatBuffersSerDes.cpp - Tensors as FlatBuffers ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes and reads the table Message of tensors.fbs. One builder is reused for
/// all written messages. If FlatBuffers' verifier accepts a received message,
/// its tensors are read in place.
///
//===----------------------------------------------------------------------===//

#include "FlatBuffersSerDes.h"

#include "MLCompilerBridge/SerDes/MessageCheck.h"
#include "tensors_generated.h"

#include <cstring>

using namespace MLBridge;

namespace flat = mlcompilerbridge::flat;

namespace {

class FlatBuffersSerDes final : public BaseSerDes {
public:
  std::string_view name() const override { return "flatbuffers"; }
  Expected<std::size_t> getMaxSerializedSize() override;
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override;

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) override;

private:
  flatbuffers::Offset<flat::Tensor> write(const TensorView &Tensor);
  Error read(const flat::Tensor &Tensor);

  flatbuffers::FlatBufferBuilder Builder;
  std::vector<flatbuffers::Offset<flat::Tensor>> Written;
  std::vector<TensorView> Views;
  MessageCheck CheckOut, CheckIn;
};

} // namespace

static Error malformed(const std::string &What) {
  return {ErrorCode::Malformed, "FlatBuffers message: " + What};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

flatbuffers::Offset<flat::Tensor>
FlatBuffersSerDes::write(const TensorView &Tensor) {
  auto Name = Builder.CreateString(Tensor.Name.data(), Tensor.Name.size());
  auto Shape = Builder.CreateVector(Tensor.Dims.begin(), Tensor.Dims.rank());
  auto Lengths =
      Tensor.isStringList()
          ? Builder.CreateVector(Tensor.Lengths.data(), Tensor.Lengths.size())
          : 0;
  Builder.ForceVectorAlignment(Tensor.NumBytes, 1, elementSize(Tensor.Type));
  auto Data = Builder.CreateVector(
      static_cast<const std::uint8_t *>(Tensor.Data), Tensor.NumBytes);
  return flat::CreateTensor(Builder, Name, static_cast<flat::Type>(Tensor.Type),
                            Shape, Data, Lengths);
}

Expected<std::size_t> FlatBuffersSerDes::getMaxSerializedSize() {
  if (Error E = CheckOut(Features, ErrorCode::InvalidArgument))
    return E;
  // The bytes for a tensor's offsets, shape and padding.
  constexpr std::size_t MostBeside = 256;
  std::size_t Bound = MostBeside;
  for (const TensorView &Feature : Features)
    Bound += Feature.Name.size() + Feature.NumBytes +
             8 * Feature.Lengths.size() + MostBeside;
  if (Bound >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return Error(ErrorCode::InvalidArgument,
                 "a FlatBuffer of up to " + std::to_string(Bound) +
                     " bytes exceeds the limit of 2 GiB");
  Builder.Clear();
  Written.clear();
  for (const TensorView &Feature : Features)
    Written.push_back(write(Feature));
  auto Tensors = Builder.CreateVector(Written.data(), Written.size());
  flat::FinishMessageBuffer(Builder, flat::CreateMessage(Builder, Tensors));
  return Builder.GetSize();
}

Expected<std::size_t>
FlatBuffersSerDes::getSerializedData(Span<std::byte> Out) {
  if (Out.size() < Builder.GetSize())
    return Error(ErrorCode::InvalidArgument, "the region is too small");
  std::memcpy(Out.data(), Builder.GetBufferPointer(), Builder.GetSize());
  return Builder.GetSize();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Error FlatBuffersSerDes::read(const flat::Tensor &Tensor) {
  TensorView View;
  View.Name = {Tensor.name()->c_str(), Tensor.name()->size()};
  auto Type = static_cast<std::size_t>(Tensor.type());
  if (Type > static_cast<std::size_t>(ElementType::String))
    return malformed("unknown type number " + std::to_string(Type));
  View.Type = static_cast<ElementType>(Type);
  // Check the alignment of vector elements, because the verifier checks only
  // all other alignments.
  auto IsAligned = [](const auto *Vector, std::size_t Size) {
    return !Vector || Vector->size() == 0 ||
           reinterpret_cast<std::uintptr_t>(Vector->data()) % Size == 0;
  };
  if (!IsAligned(Tensor.shape(), 8) || !IsAligned(Tensor.lengths(), 8) ||
      !IsAligned(Tensor.data(), elementSize(View.Type)))
    return malformed("a tensor of " + std::string(elementTypeName(View.Type)) +
                     " is not aligned; use ForceVectorAlignment");
  if (Tensor.shape())
    for (std::int64_t Extent : *Tensor.shape())
      if (!View.Dims.push(Extent))
        return {ErrorCode::Unsupported,
                "FlatBuffers message: more than 8 extents"};
  static const std::uint64_t Nothing = 0;
  View.Data = &Nothing;
  if (Tensor.data() && Tensor.data()->size() != 0) {
    View.Data = Tensor.data()->data();
    View.NumBytes = Tensor.data()->size();
  }
  if (Tensor.lengths())
    View.Lengths = {Tensor.lengths()->data(), Tensor.lengths()->size()};
  Views.push_back(View);
  return Error::success();
}

Expected<Span<const TensorView>>
FlatBuffersSerDes::deserializeUntyped(Span<const std::byte> Message,
                                      const AdviceSpec &) {
  auto *Bytes = reinterpret_cast<const std::uint8_t *>(Message.data());
  if (Message.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return malformed("longer than 2 GiB");
  flatbuffers::Verifier Verifier(Bytes, Message.size());
  if (!flat::VerifyMessageBuffer(Verifier))
    return malformed("not a message of tensors.fbs, or cut short");
  Views.clear();
  const auto *Tensors = flat::GetMessage(Bytes)->tensors();
  if (!Tensors)
    return Span<const TensorView>();
  std::size_t Total = 0;
  for (const flat::Tensor *Tensor : *Tensors) {
    if (Error E = read(*Tensor))
      return E;
    // Refuse tensors that share bytes, so that the time is linear in the size
    // of the message.
    Total += Views.back().Name.size() + Views.back().NumBytes +
             8 * Views.back().Lengths.size();
    if (Total > Message.size())
      return malformed("its tensors are longer than the message");
  }
  if (Error E = CheckIn(Views, ErrorCode::Malformed))
    return E;
  return Span<const TensorView>(Views);
}

void MLBridge::addFlatBuffers(SerDesFactory &Formats) {
  Formats.add<FlatBuffersSerDes>("flatbuffers",
                                 "the messages of tensors.fbs, read in place");
}
