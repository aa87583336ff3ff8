//===- AOTDescriptor.cpp - Reads the descriptor of a compiled model -------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AOT/AOTDescriptor.h"

#include "Support/PrintableText.h"

using namespace MLBridge;
using namespace MLBridge::aot;

static_assert(int(ElementType::Int8) == MLBRIDGE_AOT_INT8 &&
              int(ElementType::UInt8) == MLBRIDGE_AOT_UINT8 &&
              int(ElementType::Float) == MLBRIDGE_AOT_FLOAT &&
              int(ElementType::Bool) == MLBRIDGE_AOT_BOOL);
static_assert(TensorSpec::AnyExtent == MLBRIDGE_AOT_COMPUTED);

/// The limits on the numbers of tensors and variants. Every model has fewer.
/// Without limits, a damaged count could make the reader access unmapped
/// memory.
static constexpr std::uint32_t MostTensors = 65'536;
static constexpr std::uint32_t MostVariants = 64;

namespace {

/// Reads one descriptor. Stops at the first error.
class DescriptorReader {
public:
  explicit DescriptorReader(const MLBridgeAOTModel &Descriptor)
      : Descriptor(Descriptor) {}

  Error read();
  Error chooseVariant(std::string_view CPU);

  DescribedModel Result;

private:
  Error checkHead() const;
  Error checkCounts() const;
  Error checkVariants() const;
  Error readTensors(const char *What, const MLBridgeAOTTensor *Tensors,
                    std::uint32_t Count, std::int64_t MostFree,
                    std::vector<TensorSpec> &Specs) const;
  Expected<TensorSpec> readTensor(const MLBridgeAOTTensor &Tensor,
                                  std::int64_t MostFree) const;
  Error readProperties();

  const MLBridgeAOTModel &Descriptor;
};

} // namespace

static Error nullPointer(const std::string &What) {
  return {ErrorCode::Malformed,
          "its descriptor: expected " + What + ", found a null pointer"};
}

static Error checkCount(const char *What, std::uint32_t Count,
                        std::uint32_t Least, std::uint32_t Most) {
  if (Count >= Least && Count <= Most)
    return Error::success();
  return {ErrorCode::Malformed, "its descriptor: expected " +
                                    std::to_string(Least) + " to " +
                                    std::to_string(Most) + " " + What +
                                    ", found " + std::to_string(Count)};
}

/// Checks that \p Count is from \p Least to \p Most. If \p Count is positive,
/// also checks that \p Array is not null. \p What names the elements in error
/// messages.
static Error checkArray(const char *What, const void *Array,
                        std::uint32_t Count, std::uint32_t Least,
                        std::uint32_t Most) {
  if (Error E = checkCount(What, Count, Least, Most))
    return E;
  return Count != 0 && !Array ? nullPointer(What) : Error::success();
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Error DescriptorReader::checkHead() const {
  if (Descriptor.magic != MLBRIDGE_AOT_MAGIC)
    return {ErrorCode::Malformed,
            "its descriptor was not written by `mlbridge compile`"};
  if (Descriptor.abi != MLBRIDGE_AOT_ABI)
    return {ErrorCode::Unsupported,
            "expected ABI version " + std::to_string(MLBRIDGE_AOT_ABI) +
                ", found " + std::to_string(Descriptor.abi) +
                ": compile the model again with this version of `mlbridge`"};
  return Error::success();
}

Error DescriptorReader::checkCounts() const {
  if (!Descriptor.name)
    return nullPointer("the model's name");
  if (!Descriptor.measure)
    return nullPointer("the function measure");
  if (Error E = checkArray("inputs", Descriptor.inputs, Descriptor.num_inputs,
                           0, MostTensors))
    return E;
  if (Error E = checkArray("outputs", Descriptor.outputs,
                           Descriptor.num_outputs, 1, MostTensors))
    return E;
  if (Error E = checkArray("properties", Descriptor.properties,
                           Descriptor.num_properties, 0, MostTensors))
    return E;
  if (Error E = checkCount("free extents", Descriptor.num_free_extents, 0,
                           MostTensors))
    return E;
  return checkArray("variants", Descriptor.variants, Descriptor.num_variants, 1,
                    MostVariants);
}

Error DescriptorReader::read() {
  if (Error E = checkHead())
    return E;
  if (Error E = checkCounts())
    return E;
  if (Error E = readTensors("input", Descriptor.inputs, Descriptor.num_inputs,
                            MLBRIDGE_AOT_FREE(0), Result.Inputs))
    return E;
  if (Error E =
          readTensors("output", Descriptor.outputs, Descriptor.num_outputs,
                      MLBRIDGE_AOT_COMPUTED, Result.Outputs))
    return E;
  return readProperties();
}

Error DescriptorReader::readProperties() {
  for (std::uint32_t I = 0; I < Descriptor.num_properties; ++I) {
    const MLBridgeAOTProperty &Property = Descriptor.properties[I];
    const std::string Number = " of property " + std::to_string(I);
    if (!Property.key)
      return nullPointer("the key" + Number);
    if (!Property.value)
      return nullPointer("the value" + Number);
    Result.About.emplace_back(Property.key, Property.value);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Reads \p Count tensors. A negative extent must be at most \p MostFree.
Error DescriptorReader::readTensors(const char *What,
                                    const MLBridgeAOTTensor *Tensors,
                                    std::uint32_t Count, std::int64_t MostFree,
                                    std::vector<TensorSpec> &Specs) const {
  for (std::uint32_t I = 0; I < Count; ++I) {
    if (!Tensors[I].name)
      return nullPointer("the name of " + std::string(What) + " " +
                         std::to_string(I));
    Expected<TensorSpec> Spec = readTensor(Tensors[I], MostFree);
    if (!Spec)
      return Spec.takeError();
    Specs.push_back(std::move(*Spec));
  }
  return Error::success();
}

Expected<TensorSpec>
DescriptorReader::readTensor(const MLBridgeAOTTensor &Tensor,
                             std::int64_t MostFree) const {
  TensorSpec Spec;
  Spec.Name = Tensor.name;
  const std::string Shown = "'" + printable(Spec.Name) + "'";
  auto Unsupported = [&](const std::string &What) {
    return Error(ErrorCode::Unsupported, Shown + ": " + What);
  };
  if (Tensor.type > MLBRIDGE_AOT_BOOL)
    return Unsupported("this build does not know the element type " +
                       std::to_string(Tensor.type));
  Spec.Type = static_cast<ElementType>(Tensor.type);
  if (Tensor.rank > Shape::MaxRank)
    return Unsupported("expected a rank of at most " +
                       std::to_string(Shape::MaxRank) + ", found " +
                       std::to_string(Tensor.rank));
  if (Tensor.rank != 0 && !Tensor.extents)
    return nullPointer("the extents of " + Shown);
  const std::int64_t LastFree =
      MLBRIDGE_AOT_FREE(std::int64_t(Descriptor.num_free_extents) - 1);
  for (std::uint32_t D = 0; D < Tensor.rank; ++D) {
    const std::int64_t Extent = Tensor.extents[D];
    if (Extent < LastFree || (Extent < 0 && Extent > MostFree))
      return Unsupported("this build does not know the extent " +
                         std::to_string(Extent));
    Spec.Dims.push(Extent);
  }
  return Spec;
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

Error DescriptorReader::checkVariants() const {
  for (std::uint32_t I = 0; I < Descriptor.num_variants; ++I) {
    const MLBridgeAOTVariant &Variant = Descriptor.variants[I];
    const std::string Number = " of variant " + std::to_string(I);
    if (!Variant.cpu)
      return nullPointer("the CPU" + Number);
    if (!Variant.supported)
      return nullPointer("the function supported" + Number);
    if (!Variant.run)
      return nullPointer("the function run" + Number);
  }
  return Error::success();
}

Error DescriptorReader::chooseVariant(std::string_view CPU) {
  if (Error E = checkVariants())
    return E;
  std::string Possible;
  for (std::uint32_t I = 0; I < Descriptor.num_variants; ++I) {
    const MLBridgeAOTVariant &Variant = Descriptor.variants[I];
    if (!Variant.supported())
      continue;
    // Choose the first variant by default, because it is the widest.
    if (CPU.empty() || Variant.cpu == CPU) {
      Result.Variant = &Variant;
      return Error::success();
    }
    Possible += (Possible.empty() ? "" : ", ") + printable(Variant.cpu);
  }
  const std::string Wanted =
      CPU.empty() ? "no code" : "no code for '" + printable(CPU) + "'";
  return {ErrorCode::Unsupported,
          "it has " + Wanted + " that this CPU can run" +
              (Possible.empty() ? "" : "; it has " + Possible)};
}

Expected<DescribedModel> aot::readDescriptor(const MLBridgeAOTModel &Descriptor,
                                             std::string_view CPU) {
  DescriptorReader Reader(Descriptor);
  if (Error E = Reader.read())
    return E;
  if (Error E = Reader.chooseVariant(CPU))
    return E;
  return std::move(Reader.Result);
}
