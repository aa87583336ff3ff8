//===- EpisodeRequest.h - What a trainer asks of an episode -----*- C++ -*-===//
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
  /// Which state is the result of an episode.
  enum class Final : std::uint8_t {
    Last, ///< The one it ends in.
    Best, ///< The first of those with the highest value on the way.
  };

  /// The file of the program.
  std::string Module;
  /// Actions that have been taken when the episode begins.
  ActionSequence Sequence;
  Final Result = Final::Last;
  /// How many actions it may have, if not the usual number.
  std::optional<unsigned> Steps;
  /// Where the result is written when the episode is over; may be empty.
  std::string Output;

  /// Reads `{"module": FILE, "sequence": [0, ...], "final": "last" or "best",
  /// "steps": N, "output": FILE}`, any of which may be missing, and an empty
  /// text, which is none of them. InvalidArgument for anything else, so that no
  /// typing error goes unnoticed.
  static Expected<EpisodeRequest> parse(llvm::StringRef JSON,
                                        const ActionSpace &Actions);
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_EPISODEREQUEST_H
