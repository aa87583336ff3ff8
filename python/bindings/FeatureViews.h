//===- FeatureViews.h - The features of a request, in Python ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureViews creates the dict of features that a policy receives, and caches
/// the dict's arrays across requests.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FEATUREVIEWS_H
#define MLBRIDGE_PYTHON_FEATUREVIEWS_H

#include "MLCompilerBridge/Transport/ModelServer.h"

#include <nanobind/nanobind.h>
#include <unordered_map>
#include <vector>

namespace MLBridge::Python {

/// Caches the arrays for each session and each layout of a request. Most
/// compilers repeatedly send the same few sets of features, which always arrive
/// at the same addresses. For these requests, only a small dict is copied.
class FeatureViews {
public:
  /// Returns the features by name. The arrays keep their memory alive, but
  /// their contents are valid only until the next request is received.
  nanobind::dict dictFor(const ModelServer::Request &Request);
  /// Releases all memory.
  void clear() {
    Sessions.clear();
    Last = nullptr;
  }

private:
  /// The Python objects for one layout.
  struct LayoutViews {
    /// Maps the name of each feature to its array, in the order of the request.
    /// The value for a string is None.
    nanobind::dict Arrays;
    /// A string feature. Strings are converted again for each request.
    struct Text {
      std::size_t Index;
      nanobind::object Name;
    };
    std::vector<Text> Texts;
  };
  struct SessionViews {
    std::uint64_t Session = 0;
    /// The Python object that owns the arrays, and the memory that this object
    /// keeps alive.
    nanobind::object Owner;
    std::weak_ptr<const void> Memory;
    std::uint64_t MemoryId = 0;
    /// The cached objects for each schema.
    std::unordered_map<std::uint64_t, LayoutViews> Layouts;
    /// The number of features in all layouts. The cache limits this number
    /// instead of the number of layouts, because a peer chooses how many
    /// features a layout has.
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

  /// The cached objects for each session number.
  std::unordered_map<std::uint64_t, SessionViews> Sessions;
  /// The session of the last request.
  SessionViews *Last = nullptr;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FEATUREVIEWS_H
