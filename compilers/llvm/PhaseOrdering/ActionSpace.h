//===- ActionSpace.h - The actions of phase ordering ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ActionSpace: the actions of phase ordering, each a named pipeline of LLVM
/// passes. Action spaces are data: three are built into the plug-in
/// (optimizations/phase_ordering/action_spaces); others come from files.
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

/// Immutable once created; copies are independent.
class ActionSpace {
public:
  struct Action {
    std::string Name;
    /// A module pipeline, as for `opt -passes=`.
    std::string Pipeline;
    bool operator==(const Action &) const = default;
  };
  /// The maximum number of actions, so that tables of all actions stay small.
  static constexpr std::size_t MaxActions = 65535;

  /// Loads the built-in space of that name (`oz`, `odg`, `passes`), or else the
  /// file of that name. Errors: System if neither exists; those of parse().
  static Expected<ActionSpace> load(llvm::StringRef NameOrFile);
  /// Parses the JSON `{"name": ..., "description": ..., "prologue": PIPELINE,
  /// "actions": [{"name": ..., "pipeline": PIPELINE}, ...]}` and checks every
  /// pipeline with LLVM. Errors contain \p Source. Malformed if the JSON has
  /// another form; InvalidArgument if LLVM rejects a pipeline.
  static Expected<ActionSpace> parse(llvm::StringRef Text,
                                     llvm::StringRef Source);

  const std::string &name() const { return Name; }
  const std::string &description() const { return Description; }
  /// The pipeline that always runs before the first action: passes that
  /// implement what the source demands.
  const std::string &prologue() const { return Prologue; }
  std::size_t size() const { return Actions.size(); }
  const Action &operator[](std::size_t Index) const { return Actions[Index]; }

  /// True if equal action numbers run equal passes.
  bool isEquivalentTo(const ActionSpace &Other) const {
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
