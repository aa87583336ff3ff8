//===- EpisodeSettings.h - A trainer's options for an episode ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EpisodeSettings holds the options that a trainer sends with a reset, as
/// JSON.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_EPISODESETTINGS_H
#define MLBRIDGE_LLVM_PHASEORDERING_EPISODESETTINGS_H

#include "PhaseOrdering/ActionSpace.h"
#include "PhaseOrdering/Observation.h"

#include <optional>
#include <string>

namespace MLBridge {

struct EpisodeSettings {
  /// Selects the state that is the result of an episode.
  enum class Final : std::uint8_t {
    Last, ///< The state after the last action.
    Best, ///< The first state with the highest value.
  };

  /// The path of the program's module.
  std::string Module;
  /// Actions to apply before the episode starts.
  ActionSequence Sequence;
  Final Result = Final::Last;
  /// The maximum number of actions. If empty, the default applies.
  std::optional<unsigned> Steps;
  /// The file to which the result is written at the end of the episode. If
  /// empty, no file is written.
  std::string Output;

  /// Parses `{"module": FILE, "sequence": [0, ...], "final": "last" or "best",
  /// "steps": N, "output": FILE}`, where every key is optional. An empty text
  /// is allowed too. Returns InvalidArgument for anything else, including
  /// unknown keys, so that typos are reported.
  static Expected<EpisodeSettings> parse(llvm::StringRef JSON,
                                         const ActionSpace &Actions);
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_EPISODESETTINGS_H
