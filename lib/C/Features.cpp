//===- Features.cpp - Tensors that C writes -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"
#include "C/Elements.h"
#include "C/Handles.h"

#include "Core/TensorForm.h"

#include <cstring>

using namespace MLBridge;
using namespace MLBridge::C;

/// Sets one feature. Calls \p Do with the feature set. If \p Do fails, records
/// the error in the feature set.
template <typename Function>
static MLBridgeStatus setBy(MLBridgeFeatureSetRef Features, const char *Name,
                            Function &&Do) {
  return call([&]() -> Error {
    if (!Features)
      return isNull("Features");
    try {
      Error E = Name ? Do(Features->Set) : isNull("Name");
      if (E && Name)
        E = Error(E.code(),
                  "feature '" + std::string(Name) + "': " + E.message());
      if (E && !Features->Misuse)
        Features->Misuse = E;
      return E;
    } catch (...) {
      // Record an error, because an incomplete request must not be sent.
      Features->Set.clear();
      Features->Misuse = Error(ErrorCode::System, "no memory");
      throw;
    }
  });
}

/// Returns a view of the tensor that the arguments describe. The view points to
/// the caller's memory.
static Expected<TensorView> viewOf(MLBridgeElementType Type, const void *Data,
                                   const int64_t *Extents, size_t Rank) {
  Expected<ElementType> Element = numberType(Type);
  if (!Element)
    return Element.takeError();
  if (Rank > Shape::MaxRank)
    return Error(ErrorCode::InvalidArgument,
                 "expected a rank of at most " +
                     std::to_string(Shape::MaxRank) + ", found " +
                     std::to_string(Rank));
  if (!Extents && Rank != 0)
    return isNull("Extents");
  TensorView View;
  View.Type = *Element;
  View.Dims = Shape(Span<const std::int64_t>(Extents, Rank));
  View.Data = Data;
  View.NumBytes = View.Dims.numElements().value_or(0) * elementSize(View.Type);
  if (std::string Why = detail::contradiction(View); !Why.empty())
    return Error(ErrorCode::InvalidArgument, Why);
  return View;
}

MLBridgeStatus mlbridgeSetScalar(MLBridgeFeatureSetRef Features,
                                 const char *Name, MLBridgeElementType Type,
                                 const void *Value) {
  return mlbridgeSetTensor(Features, Name, Type, Value, nullptr, 0);
}

MLBridgeStatus mlbridgeSetTensor(MLBridgeFeatureSetRef Features,
                                 const char *Name, MLBridgeElementType Type,
                                 const void *Data, const int64_t *Extents,
                                 size_t Rank) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    Expected<TensorView> View = viewOf(Type, Data, Extents, Rank);
    if (View)
      Set.copy(Name, *View);
    return View.takeError();
  });
}

MLBridgeStatus mlbridgeBorrowTensor(MLBridgeFeatureSetRef Features,
                                    const char *Name, MLBridgeElementType Type,
                                    const void *Data, const int64_t *Extents,
                                    size_t Rank) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    Expected<TensorView> View = viewOf(Type, Data, Extents, Rank);
    if (View)
      Set.set(Name, *View);
    return View.takeError();
  });
}

MLBridgeStatus mlbridgeSetString(MLBridgeFeatureSetRef Features,
                                 const char *Name, const char *Text) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    if (!Text)
      return isNull("Text");
    Set.set(Name, std::string_view(Text));
    return Error::success();
  });
}

MLBridgeStatus mlbridgeSetStringWithLength(MLBridgeFeatureSetRef Features,
                                           const char *Name, const char *Text,
                                           size_t Length) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    if (!Text && Length != 0)
      return isNull("Text");
    Set.set(Name, std::string_view(Text, Length));
    return Error::success();
  });
}

namespace {
/// Wraps a list of C strings as a container for FeatureSet::set().
struct StringList {
  struct Iterator {
    const StringList &List;
    std::size_t At;
    std::string_view operator*() const {
      return List.Lengths ? std::string_view(List.Texts[At], List.Lengths[At])
                          : std::string_view(List.Texts[At]);
    }
    Iterator &operator++() {
      ++At;
      return *this;
    }
    bool operator!=(const Iterator &Other) const { return At != Other.At; }
  };
  const char *const *Texts;
  const size_t *Lengths;
  std::size_t Count;

  const char *const *data() const { return Texts; }
  std::size_t size() const { return Count; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, Count}; }
};
} // namespace

MLBridgeStatus mlbridgeSetStringVector(MLBridgeFeatureSetRef Features,
                                       const char *Name,
                                       const char *const *Texts,
                                       const size_t *Lengths, size_t Count) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    if (!Texts && Count != 0)
      return isNull("Texts");
    for (std::size_t I = 0; I != Count; ++I) {
      const bool MayBeNull = Lengths && Lengths[I] == 0;
      if (!Texts[I] && !MayBeNull)
        return {ErrorCode::InvalidArgument,
                "string " + std::to_string(I) + " is null"};
    }
    Set.set(Name, StringList{Texts, Lengths, Count});
    return Error::success();
  });
}

MLBridgeStatus mlbridgeCopyTensor(MLBridgeFeatureSetRef Features,
                                  const char *Name, MLBridgeAdviceRef From,
                                  const char *FromName) {
  return setBy(Features, Name, [&](FeatureSet &Set) -> Error {
    if (!From)
      return isNull("From");
    Expected<const TensorView *> Tensor =
        FromName ? From->Tensors.named(FromName) : From->Tensors.only();
    if (!Tensor)
      return Tensor.takeError();
    if (std::string Why = detail::contradiction(**Tensor); !Why.empty())
      return {ErrorCode::Malformed, Why};
    Set.copy(Name, **Tensor);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeClearFeatures(MLBridgeFeatureSetRef Features) {
  return call([&]() -> Error {
    if (!Features)
      return isNull("Features");
    Features->clear();
    return Error::success();
  });
}
