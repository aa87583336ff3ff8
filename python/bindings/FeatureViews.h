//===- FeatureViews.h - The features of a question, in Python ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureViews: makes the dict that a policy gets, and makes the arrays in it
/// once rather than once a question.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FEATUREVIEWS_H
#define MLBRIDGE_PYTHON_FEATUREVIEWS_H

#include "MLCompilerBridge/ModelServer.h"

#include <nanobind/nanobind.h>
#include <vector>

namespace MLBridge::Python {

/// The arrays of each session's last layout. Most compilers ask about the same
/// features again and again, in the same place: then a question costs one copy
/// of a small dict.
class FeatureViews {
public:
  /// The features by name. The arrays show the question until the next one is
  /// received; their memory lives as long as they do.
  nanobind::dict dictFor(const ModelServer::Question &Question);
  /// Whether the last question was the first of its session.
  bool wasFirstOfSession() const { return Sessions.front().Questions == 1; }

private:
  struct SessionViews {
    std::uint64_t Session = 0;
    std::uint64_t Questions = 0;
    std::uint64_t Layout = 0;
    /// The arrays' owner, and what it owns.
    nanobind::object Owner;
    std::weak_ptr<const void> Memory;
    /// Every name in order: with its array, or None for a text.
    nanobind::dict Arrays;
    /// The texts, which have to be made each time.
    struct Text {
      std::size_t Index;
      nanobind::object Name;
    };
    std::vector<Text> Texts;
  };

  SessionViews &viewsOf(const ModelServer::Question &Question);
  static void remake(SessionViews &Views,
                     const ModelServer::Question &Question);

  /// Few at a time; the last used is the first.
  std::vector<SessionViews> Sessions;
};

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FEATUREVIEWS_H
