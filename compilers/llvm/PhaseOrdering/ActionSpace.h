//===- ActionSpace.h - What phase ordering may do ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ActionSpace: the actions of phase ordering, each a pipeline of LLVM passes
/// by a name. They are data: three spaces are part of the plug-in (actions/,
/// with how they were derived), others come from files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_ACTIONSPACE_H
#define MLBRIDGE_LLVM_PHASEORDERING_ACTIONSPACE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// A value that nobody changes once it is made; copies are independent.
class ActionSpace {
public:
  struct Action {
    std::string Name;
    /// As for `opt -passes=`; for a module.
    std::string Pipeline;
    bool operator==(const Action &) const = default;
  };
  /// What an action is, as a number: few enough for a table of each.
  static constexpr std::size_t MaxActions = 65535;

  /// The space of that name in the plug-in (`oz`, `odg`, `passes`), or else the
  /// one in the file of that name. Errors: System where there is neither; those
  /// of parse().
  static Expected<ActionSpace> load(llvm::StringRef NameOrFile);
  /// Reads the JSON `{"name": ..., "description": ..., "prologue": PIPELINE,
  /// "actions": [{"name": ..., "pipeline": PIPELINE}, ...]}`, and has LLVM read
  /// every pipeline. \p Source is its name in errors. Malformed where it is no
  /// such JSON; InvalidArgument where LLVM refuses a pipeline.
  static Expected<ActionSpace> parse(llvm::StringRef Text,
                                     llvm::StringRef Source);

  const std::string &name() const { return Name; }
  const std::string &description() const { return Description; }
  /// What is run before the first action, whatever is decided later: passes
  /// without which a program would not be what its source demands.
  const std::string &prologue() const { return Prologue; }
  std::size_t size() const { return Actions.size(); }
  const Action &operator[](std::size_t Index) const { return Actions[Index]; }

  /// Whether the same numbers mean the same passes.
  bool doesAs(const ActionSpace &Other) const {
    return Prologue == Other.Prologue && Actions == Other.Actions;
  }

private:
  ActionSpace() = default;
  Error checkPipelines(llvm::StringRef Source) const;

  std::string Name, Description, Prologue;
  std::vector<Action> Actions;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_ACTIONSPACE_H
