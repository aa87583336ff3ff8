//===- FeatureBinding.cpp - Matches features to a model's inputs ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/FeatureBinding.h"

#include "Support/PrintableText.h"

#include <bit>
#include <limits>

using namespace MLBridge;
using namespace MLBridge::inprocess;

//===----------------------------------------------------------------------===//
// Finding features
//===----------------------------------------------------------------------===//

const TensorView *inprocess::findFeature(Span<const TensorView> Features,
                                         std::string_view Name,
                                         std::size_t &Slot) {
  if (Slot < Features.size() && Features[Slot].Name == Name)
    return &Features[Slot];
  for (std::size_t I = 0; I < Features.size(); ++I)
    if (Features[I].Name == Name) {
      Slot = I;
      return &Features[I];
    }
  return nullptr;
}

std::string inprocess::listFeatures(Span<const TensorView> Features) {
  constexpr std::size_t MostShown = 5;
  std::string Text;
  for (const TensorView &Feature : Features) {
    if (&Feature == Features.begin() + MostShown)
      return Text + " and " + std::to_string(Features.size() - MostShown) +
             " more";
    if (!Text.empty())
      Text += ", ";
    Text += "'" + printable(Feature.Name) + "' " + Feature.typeStr();
  }
  return Text.empty() ? "none" : Text;
}

//===----------------------------------------------------------------------===//
// Binding features to inputs
//===----------------------------------------------------------------------===//

FeatureBinding::FeatureBinding(std::shared_ptr<const Model> M,
                               std::vector<TensorSpec> OtherFeatures,
                               bool RefuseNonFinite)
    : TheModel(std::move(M)), Others(std::move(OtherFeatures)),
      RefuseNonFinite(RefuseNonFinite) {
  auto Want = [this](const TensorSpec &Spec) {
    Features.push_back({&Spec, 0, std::nullopt, 0});
    Views.push_back({Spec.Name, Spec.Type, {}, nullptr, 0, {}});
  };
  for (const TensorSpec &Input : TheModel->inputs())
    Want(Input);
  for (const TensorSpec &Other : Others)
    Want(Other);
}

Expected<Span<const TensorView>>
FeatureBinding::bind(Span<const TensorView> Offered) {
  for (std::size_t I = 0; I < Features.size(); ++I) {
    Wanted &W = Features[I];
    TensorView &View = Views[I];
    const TensorView *Feature = findFeature(Offered, W.Spec->Name, W.Slot);
    if (!Feature || Feature->Type != W.Spec->Type || W.Fits != Feature->Dims)
      if (Error E = rebind(W, View, Feature, Offered))
        return E;
    View.Data = Feature->Data;
    View.NumBytes = Feature->NumBytes;
    View.Lengths = Feature->Lengths;
    // If the model expects a list of strings, use a string as a list of one
    // string.
    if (View.isStringList() && !Feature->isStringList()) {
      W.Length = Feature->NumBytes;
      View.Lengths = {&W.Length, 1};
    }
  }
  if (!ExtentsAgree) {
    if (Error E = checkSharedExtents())
      return E;
    ExtentsAgree = true;
  }
  if (RefuseNonFinite)
    if (Error E = checkFinite())
      return E;
  return Span<const TensorView>(Views.data(), TheModel->inputs().size());
}

/// Binds a feature whose shape differs from the last request. Returns an error
/// if the feature is missing, or if its type or shape does not fit.
Error FeatureBinding::rebind(Wanted &W, TensorView &View,
                             const TensorView *Found,
                             Span<const TensorView> Offered) {
  if (!Found)
    return {ErrorCode::SchemaMismatch,
            TheModel->name() + ": expected a feature '" +
                printable(W.Spec->Name) + "' " + W.Spec->typeStr() +
                ", found none of that name among " + listFeatures(Offered)};
  const TensorView &Feature = *Found;
  if (Feature.Type != W.Spec->Type)
    return mismatch(*W.Spec, Feature);
  W.Fits.reset();
  ExtentsAgree = false;
  const Shape &Expected = W.Spec->Dims;
  if (Feature.Dims.rank() > Expected.rank())
    return mismatch(*W.Spec, Feature);
  Shape Full;
  for (std::size_t I = Feature.Dims.rank(); I < Expected.rank(); ++I)
    Full.push(1);
  for (std::int64_t Extent : Feature.Dims)
    Full.push(Extent);
  for (std::size_t I = 0; I < Expected.rank(); ++I)
    if (Expected[I] >= 0 && Expected[I] != Full[I])
      return mismatch(*W.Spec, Feature);
  View.Dims = Full;
  W.Fits = Feature.Dims;
  return Error::success();
}

Error FeatureBinding::mismatch(const TensorSpec &Expected,
                               const TensorView &Found,
                               const std::string &Why) const {
  return {ErrorCode::SchemaMismatch, TheModel->name() + ": feature '" +
                                         printable(Expected.Name) +
                                         "': expected " + Expected.typeStr() +
                                         ", found " + Found.typeStr() + Why};
}

//===----------------------------------------------------------------------===//
// Checks across features
//===----------------------------------------------------------------------===//

/// Checks that extents are equal if the model declares them equal. Compares
/// each of these extents with the first extent to which it must be equal. This
/// function is called only after a shape has changed.
Error FeatureBinding::checkSharedExtents() const {
  const std::size_t NumInputs = TheModel->inputs().size();
  for (std::size_t I = 0; I < NumInputs; ++I) {
    const Shape &Extents = Features[I].Spec->Dims;
    for (std::size_t D = 0; D < Extents.rank(); ++D) {
      if (Extents[D] >= TensorSpec::AnyExtent)
        continue;
      auto [J, C] = firstPlace(Extents[D]);
      if (Views[J].Dims[C] != Views[I].Dims[D])
        return mismatch(*Features[I].Spec, Views[I],
                        ": its extent " + std::to_string(D) +
                            " must be extent " + std::to_string(C) + " of '" +
                            printable(Features[J].Spec->Name) + "', which is " +
                            Views[J].typeStr());
    }
  }
  return Error::success();
}

/// Finds the first input that declares \p Extent. Returns the index of the
/// input and the index of the dimension. Such an input must exist.
std::pair<std::size_t, std::size_t>
FeatureBinding::firstPlace(std::int64_t Extent) const {
  for (std::size_t I = 0;; ++I) {
    const Shape &Extents = Features[I].Spec->Dims;
    for (std::size_t D = 0; D < Extents.rank(); ++D)
      if (Extents[D] == Extent)
        return {I, D};
  }
}

/// Returns the index of the first NaN or infinity. Returns nullopt if all
/// elements are finite. The elements have the floating-point type T. Bits is an
/// unsigned integer type of the same size.
template <typename T, typename Bits>
static std::optional<std::size_t> findNonFinite(const TensorView &View) {
  const Bits Exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  const auto *Data = static_cast<const std::byte *>(View.Data);
  const std::size_t Count = View.NumBytes / sizeof(T);
  auto Load = [Data](std::size_t I) {
    Bits Value;
    __builtin_memcpy(&Value, Data + I * sizeof(T), sizeof(T));
    return Value;
  };
  // Avoid branches, so that the compiler vectorises this loop.
  Bits Found = 0;
  for (std::size_t I = 0; I < Count; ++I)
    Found |= Bits((Load(I) & Exponent) == Exponent);
  if (!Found)
    return std::nullopt;
  std::size_t I = 0;
  while ((Load(I) & Exponent) != Exponent)
    ++I;
  return I;
}

Error FeatureBinding::checkFinite() const {
  for (std::size_t I = 0; I < TheModel->inputs().size(); ++I) {
    std::optional<std::size_t> At;
    if (Views[I].Type == ElementType::Float)
      At = findNonFinite<float, std::uint32_t>(Views[I]);
    else if (Views[I].Type == ElementType::Double)
      At = findNonFinite<double, std::uint64_t>(Views[I]);
    if (At)
      return {ErrorCode::SchemaMismatch,
              TheModel->name() + ": feature '" + printable(Views[I].Name) +
                  "' " + Views[I].typeStr() +
                  ": expected finite numbers, found NaN or an infinity at "
                  "element " +
                  std::to_string(*At)};
  }
  return Error::success();
}
