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
/// Compilers send the same features repeatedly. Therefore, a feature is checked
/// in full only if its type or shape differs from the last request.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
#define MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge::inprocess {

/// Returns the feature \p Name, or null if it is absent. Searches first at the
/// index \p Slot, where the last request had the feature. Updates \p Slot.
const TensorView *findFeature(Span<const TensorView> Features,
                              std::string_view Name, std::size_t &Slot);

/// Returns a list of \p Features for error messages, for example "'a' int32_t,
/// 'b' float[3]". Returns "none" if there are no features.
std::string listFeatures(Span<const TensorView> Features);

class FeatureBinding {
public:
  /// Creates a binding for the inputs of \p M. \p Others are further required
  /// features, which only the metadata of \p M describes.
  FeatureBinding(std::shared_ptr<const Model> M, std::vector<TensorSpec> Others,
                 bool RefuseNonFinite);
  FeatureBinding(const FeatureBinding &) = delete;
  FeatureBinding &operator=(const FeatureBinding &) = delete;

  /// Returns the features in the order of the model's inputs. They are valid
  /// until the next call, and only while \p Features are valid. Returns a
  /// SchemaMismatch error if a feature is missing or does not fit.
  Expected<Span<const TensorView>> bind(Span<const TensorView> Features);

private:
  /// A required feature, and facts about it that the last request revealed.
  struct Wanted {
    /// The specification of the feature. It belongs to the model or to Others.
    const TensorSpec *Spec;
    std::size_t Slot = 0;
    /// The last shape that fitted. Empty if no shape has fitted yet.
    std::optional<Shape> Fits;
    /// The length in bytes of the feature, if it is a string that is used as a
    /// list of one string.
    std::uint64_t Length = 0;
  };

  Error rebind(Wanted &W, TensorView &View, const TensorView *Found,
               Span<const TensorView> Offered);
  Error checkSharedExtents() const;
  std::pair<std::size_t, std::size_t> firstPlace(std::int64_t Extent) const;
  Error checkFinite() const;
  Error mismatch(const TensorSpec &Expected, const TensorView &Found,
                 const std::string &Why = {}) const;

  std::shared_ptr<const Model> TheModel;
  std::vector<TensorSpec> Others;
  bool RefuseNonFinite;
  /// The features for the model's inputs, followed by the features for Others.
  std::vector<Wanted> Features;
  std::vector<TensorView> Views;
  /// True if the extents that must be equal have been checked since the last
  /// change of a shape.
  bool ExtentsAgree = false;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_FEATUREBINDING_H
