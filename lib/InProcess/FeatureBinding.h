//===- FeatureBinding.h - Matches features to a model's inputs --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureBinding: finds the feature for each input and checks that it fits.
/// Compilers send the same features repeatedly, so later requests only compare
/// with the earlier result.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
#define MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::inprocess {

/// Finds the feature \p Name, first at \p Slot, where the last request had it,
/// and then elsewhere; updates \p Slot. Null if absent.
const TensorView *findFeature(Span<const TensorView> Features,
                              std::string_view Name, std::size_t &Slot);

/// "'a' int32_t, 'b' float[3]", for messages; "none" if empty.
std::string listFeatures(Span<const TensorView> Features);

class FeatureBinding {
public:
  /// \p Others are required features that are not inputs.
  FeatureBinding(std::shared_ptr<const Model> M, std::vector<TensorSpec> Others,
                 bool RefuseNonFinite);
  FeatureBinding(const FeatureBinding &) = delete;
  FeatureBinding &operator=(const FeatureBinding &) = delete;

  /// Returns the features in the order of the model's inputs. They are valid as
  /// long as \p Features, until the next call. SchemaMismatch if a feature is
  /// missing or does not fit.
  Expected<Span<const TensorView>> bind(Span<const TensorView> Features);

private:
  /// A required feature, and what the last request revealed about it.
  struct Wanted {
    /// Belongs to the model or to Others.
    const TensorSpec *Spec;
    std::size_t Slot = 0;
    /// The last shape that fitted, if any.
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
  /// The features for the model's inputs, then for Others.
  std::vector<Wanted> Features;
  std::vector<TensorView> Views;
  /// True once the extents that must be equal have been checked.
  bool ExtentsAgree = false;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
