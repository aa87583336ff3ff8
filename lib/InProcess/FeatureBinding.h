//===- FeatureBinding.h - A model's inputs among a compiler's features *- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureBinding: which feature is which input, and whether it fits. Compilers
/// ask with the same features again and again, so what was found and checked
/// for one request is only compared for the next.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
#define MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::inprocess {

/// The feature \p Name, which was at \p Slot in the last request; it is looked
/// for elsewhere if it is no longer there, and \p Slot says where. Null where
/// there is none.
const TensorView *findFeature(Span<const TensorView> Features,
                              std::string_view Name, std::size_t &Slot);

/// "'a' int32_t, 'b' float[3]", for messages; "none" where there is none.
std::string listFeatures(Span<const TensorView> Features);

class FeatureBinding {
public:
  /// \p Others are features which must be there and fit, but are no inputs.
  FeatureBinding(std::shared_ptr<const Model> M, std::vector<TensorSpec> Others,
                 bool RefuseNonFinite);
  FeatureBinding(const FeatureBinding &) = delete;
  FeatureBinding &operator=(const FeatureBinding &) = delete;

  /// The features as the model's inputs, in its order. They are valid as long
  /// as \p Features is, until the next call. A SchemaMismatch where one is
  /// missing or does not fit.
  Expected<Span<const TensorView>> bind(Span<const TensorView> Features);

private:
  /// A feature that must be there, and what is known of it from the last
  /// request.
  struct Wanted {
    /// The model's, or one of Others.
    const TensorSpec *Spec;
    std::size_t Slot = 0;
    /// The shape that was last found to fit, if any was.
    std::optional<Shape> Fits;
    /// The length of a string that stands for a list of one.
    std::uint64_t Length = 0;
  };

  Error adopt(Wanted &W, TensorView &View, const TensorView *Found,
              Span<const TensorView> Offered);
  Error checkSharedExtents() const;
  std::pair<std::size_t, std::size_t> firstPlace(std::int64_t Extent) const;
  Error checkFinite() const;
  Error mismatch(const TensorSpec &Expected, const TensorView &Found,
                 const std::string &Why = {}) const;

  std::shared_ptr<const Model> TheModel;
  std::vector<TensorSpec> Others;
  bool RefuseNonFinite;
  /// For the model's inputs, then for Others.
  std::vector<Wanted> Features;
  std::vector<TensorView> Views;
  /// Whether the extents that must be equal are known to be.
  bool ExtentsAgree = false;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
