//===- AOTModel.cpp - Models compiled to machine code ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements Model and ModelCursor for the descriptor of a compiled model.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/AOTModel.h"

#include "AOT/AOTDescriptor.h"
#include "Core/WithNumber.h"
#include "Support/PrintableText.h"
#include "Support/SharedLibrary.h"

#include <algorithm>
#include <new>
#include <optional>

using namespace MLBridge;
using namespace MLBridge::aot;

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

namespace {

/// A compiled model: its descriptor and, unless the descriptor is linked into
/// this program, the library that contains it.
class AOTModel final : public Model {
public:
  AOTModel(std::string Name, std::vector<TensorSpec> Inputs,
           std::vector<TensorSpec> Outputs, Metadata About,
           const MLBridgeAOTModel &Descriptor,
           const MLBridgeAOTVariant &Variant,
           std::optional<SharedLibrary> Library)
      : Model(std::move(Name), std::move(Inputs), std::move(Outputs),
              std::move(About)),
        Descriptor(Descriptor), Variant(Variant), Library(std::move(Library)) {}

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const MLBridgeAOTModel &Descriptor;
  const MLBridgeAOTVariant &Variant;

private:
  std::optional<SharedLibrary> Library;
};

/// Memory that only grows. Growing discards the contents.
class AlignedBuffer {
public:
  /// Ensures that the buffer has \p Size bytes. Returns false if there is not
  /// enough memory.
  bool reserve(std::size_t Size) {
    if (Size <= Capacity)
      return true;
    Memory.reset();
    Capacity = 0;
    Memory.reset(static_cast<std::byte *>(
        ::operator new(Size, Alignment, std::nothrow)));
    Capacity = Memory ? Size : 0;
    return Memory != nullptr;
  }
  std::byte *data() const { return Memory.get(); }

private:
  static constexpr std::align_val_t Alignment{MLBRIDGE_AOT_ALIGNMENT};
  struct Delete {
    void operator()(std::byte *Memory) const {
      ::operator delete(Memory, Alignment);
    }
  };

  std::unique_ptr<std::byte, Delete> Memory;
  std::size_t Capacity = 0;
};

/// The workspace and the outputs of one thread.
class AOTCursor final : public ModelCursor {
public:
  explicit AOTCursor(std::shared_ptr<const AOTModel> M);

  /// Computes the outputs' shapes for FreeExtents, and allocates the memory for
  /// an evaluation with these extents.
  Error measure();
  Expected<Span<const TensorView>> run(Span<const TensorView> Inputs) override;

private:
  bool takeExtents(const TensorSpec &Spec, const TensorView &Input);
  Error outOfMemory(std::uint64_t Bytes) const;
  Error badIndex(Span<const TensorView> NewInputs) const;
  /// Returns the error for FreeExtents that the model does not accept.
  Error outOfRange() const;

  std::shared_ptr<const AOTModel> M;
  std::vector<std::int64_t> FreeExtents;
  std::vector<std::int64_t> OutputExtents;
  std::vector<const void *> Inputs;
  std::vector<void *> Outputs;
  std::vector<TensorView> Views;
  AlignedBuffer Workspace;
  AlignedBuffer Results;
  /// True if memory has been allocated for the current FreeExtents.
  bool Measured = false;
};

} // namespace

Expected<std::unique_ptr<ModelCursor>> AOTModel::open() const {
  auto Cursor = std::make_unique<AOTCursor>(
      std::static_pointer_cast<const AOTModel>(shared_from_this()));
  if (Descriptor.num_free_extents == 0)
    if (Error E = Cursor->measure())
      return E;
  return std::unique_ptr<ModelCursor>(std::move(Cursor));
}

//===----------------------------------------------------------------------===//
// The cursor
//===----------------------------------------------------------------------===//

AOTCursor::AOTCursor(std::shared_ptr<const AOTModel> Model)
    : M(std::move(Model)), FreeExtents(M->Descriptor.num_free_extents),
      Inputs(M->inputs().size()), Outputs(M->outputs().size()) {
  std::size_t NumExtents = 0;
  for (const TensorSpec &Spec : M->outputs()) {
    TensorView View;
    View.Name = Spec.Name;
    View.Type = Spec.Type;
    Views.push_back(View);
    NumExtents += Spec.Dims.rank();
  }
  OutputExtents.resize(NumExtents);
}

Error AOTCursor::outOfMemory(std::uint64_t Bytes) const {
  return {ErrorCode::System, M->name() + ": out of memory for " +
                                 std::to_string(Bytes) + " bytes"};
}

Error AOTCursor::outOfRange() const {
  std::string Found;
  for (TensorSpec Spec : M->inputs()) {
    bool IsFree = false;
    Shape Dims;
    for (std::int64_t Extent : Spec.Dims) {
      IsFree |= Extent < 0;
      Dims.push(Extent >= 0 ? Extent
                            : FreeExtents[static_cast<std::size_t>(
                                  MLBRIDGE_AOT_FREE(Extent))]);
    }
    Spec.Dims = Dims;
    if (IsFree)
      Found += (Found.empty() ? "'" : ", '") + printable(Spec.Name) + "' " +
               Spec.typeStr();
  }
  const std::string *Limits = M->metadata("mlbridge.extents");
  return {ErrorCode::SchemaMismatch,
          M->name() +
              ": expected free extents of at least 1, and tensors of less "
              "than 2^47 bytes" +
              (Limits ? " (" + printable(*Limits) + ")" : "") + ", found " +
              Found};
}

Error AOTCursor::measure() {
  Measured = false;
  std::uint64_t WorkspaceBytes = 0;
  if (M->Descriptor.measure(FreeExtents.data(), OutputExtents.data(),
                            &WorkspaceBytes) != MLBRIDGE_AOT_OK)
    return outOfRange();
  if (!Workspace.reserve(WorkspaceBytes))
    return outOfMemory(WorkspaceBytes);

  // Check that each output has less than 2^47 bytes. The C API's header
  // guarantees this, except for outputs with computed extents.
  constexpr std::size_t MostBytes = std::size_t(1) << 47;
  std::uint64_t ResultBytes = 0;
  const std::int64_t *Extent = OutputExtents.data();
  for (std::size_t I = 0; I < Views.size(); ++I) {
    TensorView &View = Views[I];
    View.Dims = {};
    for (std::size_t D = 0; D < M->outputs()[I].Dims.rank(); ++D)
      View.Dims.push(*Extent++);
    const std::optional<std::size_t> Count = View.Dims.numElements();
    if (!Count || *Count >= MostBytes / elementSize(View.Type))
      return {ErrorCode::Malformed,
              M->name() + ": output '" + printable(View.Name) +
                  "': expected extents of a tensor of less than 2^47 bytes, "
                  "found " +
                  View.Dims.str()};
    View.NumBytes = *Count * elementSize(View.Type);
    ResultBytes +=
        (View.NumBytes + MLBRIDGE_AOT_ALIGNMENT - 1) & -MLBRIDGE_AOT_ALIGNMENT;
  }
  if (!Results.reserve(ResultBytes))
    return outOfMemory(ResultBytes);
  std::byte *Next = Results.data();
  for (std::size_t I = 0; I < Views.size(); ++I) {
    Views[I].Data = Outputs[I] = Next;
    Next += (Views[I].NumBytes + MLBRIDGE_AOT_ALIGNMENT - 1) &
            -MLBRIDGE_AOT_ALIGNMENT;
  }
  Measured = true;
  return Error::success();
}

/// Returns the range of a non-empty tensor of integers, for example "'x' has 1
/// to 5". Returns an empty string for other tensors.
static std::string rangeOf(const TensorView &Input, const TensorSpec &Spec) {
  std::string Range;
  (void)detail::withNumber(Spec.Type, [&](auto Zero) {
    using T = decltype(Zero);
    const auto Count = Input.Dims.numElements().value_or(0);
    if (std::is_floating_point_v<T> || Count == 0)
      return Error::success();
    const auto *First = static_cast<const T *>(Input.Data);
    auto [Least, Most] = std::minmax_element(First, First + Count);
    Range = "'" + printable(Spec.Name) + "' has " + std::to_string(*Least);
    if (*Least != *Most)
      Range += " to " + std::to_string(*Most);
    return Error::success();
  });
  return Range;
}

/// Returns the error for an index that is out of range. The model does not
/// report which feature was the index. Therefore, the message lists the ranges
/// of all integer features.
Error AOTCursor::badIndex(Span<const TensorView> NewInputs) const {
  std::string Found;
  for (std::size_t I = 0; I < NewInputs.size(); ++I)
    if (std::string Range = rangeOf(NewInputs[I], M->inputs()[I]);
        !Range.empty())
      Found += (Found.empty() ? ": " : ", ") + Range;
  return {ErrorCode::Model,
          M->name() +
              ": a feature selects a row of one of the model's tables that is "
              "beyond the table's end" +
              Found};
}

/// Copies the free extents of an input. Returns true if one of them has
/// changed.
bool AOTCursor::takeExtents(const TensorSpec &Spec, const TensorView &Input) {
  bool Changed = false;
  for (std::size_t D = 0; D < Spec.Dims.rank(); ++D) {
    if (Spec.Dims[D] >= 0)
      continue;
    std::int64_t &Known =
        FreeExtents[static_cast<std::size_t>(MLBRIDGE_AOT_FREE(Spec.Dims[D]))];
    Changed |= Known != Input.Dims[D];
    Known = Input.Dims[D];
  }
  return Changed;
}

Expected<Span<const TensorView>>
AOTCursor::run(Span<const TensorView> NewInputs) {
  bool Changed = !Measured;
  for (std::size_t I = 0; I < Inputs.size(); ++I) {
    Inputs[I] = NewInputs[I].Data;
    if (!FreeExtents.empty())
      Changed |= takeExtents(M->inputs()[I], NewInputs[I]);
  }
  if (Changed)
    if (Error E = measure())
      return E;
  if (M->Variant.run(FreeExtents.data(), Inputs.data(), Outputs.data(),
                     Workspace.data()) != MLBRIDGE_AOT_OK)
    return badIndex(NewInputs);
  return Span<const TensorView>(Views);
}

//===----------------------------------------------------------------------===//
// Opening a model
//===----------------------------------------------------------------------===//

static Expected<std::shared_ptr<const Model>>
makeModel(const MLBridgeAOTModel &Descriptor, std::string Name,
          std::string_view CPU, std::optional<SharedLibrary> Library) {
  Expected<DescribedModel> Said = readDescriptor(Descriptor, CPU);
  if (!Said) {
    Error E = Said.takeError();
    return Error(E.code(), printable(Name) + ": " + E.message());
  }
  return std::make_shared<const AOTModel>(
      std::move(Name), std::move(Said->Inputs), std::move(Said->Outputs),
      std::move(Said->About), Descriptor, *Said->Variant, std::move(Library));
}

Expected<std::shared_ptr<const Model>>
MLBridge::wrapAOTModel(const MLBridgeAOTModel &Descriptor, std::string Name,
                       std::string_view CPU) {
  return makeModel(Descriptor, std::move(Name), CPU, std::nullopt);
}

Expected<std::shared_ptr<const Model>>
MLBridge::loadAOTModel(const std::string &File, std::string_view CPU) {
  std::string Name = "aot:" + printable(File);
  Expected<SharedLibrary> Library = SharedLibrary::open(File);
  if (!Library) {
    Error E = Library.takeError();
    return Error(E.code(), Name + ": " + E.message());
  }
  const auto *Symbol = static_cast<const MLBridgeAOTModel *const *>(
      Library->find(MLBRIDGE_AOT_SYMBOL));
  if (!Symbol || !*Symbol)
    return Error(ErrorCode::Malformed,
                 Name + ": expected a library made by `mlbridge compile`, "
                        "found no symbol " MLBRIDGE_AOT_SYMBOL);
  return makeModel(**Symbol, std::move(Name), CPU, std::move(*Library));
}
