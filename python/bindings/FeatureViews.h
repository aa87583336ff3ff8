//===- FeatureViews.h - The features of a request, in Python ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureViews: makes the dict of features that a policy gets, and caches the
/// arrays in it across requests.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FEATUREVIEWS_H
#define MLBRIDGE_PYTHON_FEATUREVIEWS_H

#include "MLCompilerBridge/Transport/ModelServer.h"

#include <nanobind/nanobind.h>
#include <unordered_map>
#include <vector>

namespace MLBridge::Python {

/// The arrays of each session's layouts. Most compilers send the same few sets
/// of features at the same addresses; such a request costs one copy of a small
/// dict.
class FeatureViews {
public:
  /// The features by name. The arrays show the request until the next one is
  /// received, and keep their memory alive.
  nanobind::dict dictFor(const ModelServer::Request &Request);
  /// Releases all memory.
  void clear() {
    Sessions.clear();
    Last = nullptr;
  }

private:
  /// The Python objects of a layout.
  struct LayoutViews {
    /// The array of each name in order; None for a string.
    nanobind::dict Arrays;
    /// The strings, which are converted for each request.
    struct Text {
      std::size_t Index;
      nanobind::object Name;
    };
    std::vector<Text> Texts;
  };
  struct SessionViews {
    std::uint64_t Session = 0;
    /// The owner of the arrays, and the memory it keeps alive.
    nanobind::object Owner;
    std::weak_ptr<const void> Memory;
    std::uint64_t MemoryId = 0;
    /// By schema.
    std::unordered_map<std::uint64_t, LayoutViews> Layouts;
    /// In all layouts. A bound on the number of layouts would not do: a peer
    /// chooses how many features each has.
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

  /// By session number.
  std::unordered_map<std::uint64_t, SessionViews> Sessions;
  /// The session of the last request.
  SessionViews *Last = nullptr;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FEATUREVIEWS_H
