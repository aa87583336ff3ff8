//===- FeatureViews.h - The features of a request, in Python ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureViews: makes the dict that a policy gets, and makes the arrays in it
/// once rather than once a request.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FEATUREVIEWS_H
#define MLBRIDGE_PYTHON_FEATUREVIEWS_H

#include "MLCompilerBridge/Transport/ModelServer.h"

#include <nanobind/nanobind.h>
#include <unordered_map>
#include <vector>

namespace MLBridge::Python {

/// The arrays of each session's layouts. Most compilers ask about the same few
/// sets of features again and again, in the same place: then a request costs
/// one copy of a small dict.
class FeatureViews {
public:
  /// The features by name. The arrays show the request until the next one is
  /// received; their memory lives as long as they do.
  nanobind::dict dictFor(const ModelServer::Request &Request);
  /// Lets go of all memory.
  void clear() {
    Sessions.clear();
    Last = nullptr;
  }

private:
  /// What is shown of a layout.
  struct LayoutViews {
    /// Every name in order: with its array, or None for a text.
    nanobind::dict Arrays;
    /// The texts, which have to be made each time.
    struct Text {
      std::size_t Index;
      nanobind::object Name;
    };
    std::vector<Text> Texts;
  };
  struct SessionViews {
    std::uint64_t Session = 0;
    /// The arrays' owner, and what it owns.
    nanobind::object Owner;
    std::weak_ptr<const void> Memory;
    std::uint64_t MemoryId = 0;
    /// By the schema.
    std::unordered_map<std::uint64_t, LayoutViews> Layouts;
    /// Of all of them together. A peer says how many features there are, so
    /// that no number of layouts would be a bound.
    std::size_t NumFeatures = 0;
    static constexpr std::size_t MaxFeatures = 4096;

    void forgetLayouts() {
      Layouts.clear();
      NumFeatures = 0;
    }
  };

  SessionViews &viewsOf(const ModelServer::Request &Request);
  static LayoutViews make(const ModelServer::Request &Request,
                          const nanobind::object &Owner);

  /// By number.
  std::unordered_map<std::uint64_t, SessionViews> Sessions;
  /// That of the last request.
  SessionViews *Last = nullptr;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FEATUREVIEWS_H
