//===- EpisodeRequest.h - A trainer's options for an episode ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EpisodeRequest: the options of a reset, as JSON.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_EPISODEREQUEST_H
#define MLBRIDGE_LLVM_PHASEORDERING_EPISODEREQUEST_H

#include "PhaseOrdering/ActionSpace.h"
#include "PhaseOrdering/Observation.h"

#include <optional>
#include <string>

namespace MLBridge {

struct EpisodeRequest {
  /// The state that is the result of an episode.
  enum class Final : std::uint8_t {
    Last, ///< The final state.
    Best, ///< The first state with the highest value.
  };

  /// The file of the program.
  std::string Module;
  /// Actions to apply before the episode starts.
  ActionSequence Sequence;
  Final Result = Final::Last;
  /// The maximum number of actions, if not the default.
  std::optional<unsigned> Steps;
  /// The file to write the result to at the end of the episode; may be empty.
  std::string Output;

  /// Parses `{"module": FILE, "sequence": [0, ...], "final": "last" or "best",
  /// "steps": N, "output": FILE}`, where every key is optional, or an empty
  /// text. InvalidArgument for anything else, so that typos are reported.
  static Expected<EpisodeRequest> parse(llvm::StringRef JSON,
                                        const ActionSpace &Actions);
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_EPISODEREQUEST_H
