//===- ActionSpace.h - The actions of phase ordering ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ActionSpace is a list of actions for phase ordering. Each action is a named
/// pipeline of LLVM passes. Three action spaces are built into the plug-in from
/// optimizations/phase_ordering/action_spaces. Other action spaces are read
/// from files.
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

/// An object does not change after its creation. Copies are independent.
class ActionSpace {
public:
  struct Action {
    std::string Name;
    /// A module pipeline, as for `opt -passes=`.
    std::string Pipeline;
    bool operator==(const Action &) const = default;
  };
  /// The maximum number of actions. The limit keeps tables of all actions
  /// small.
  static constexpr std::size_t MaxActions = 65535;

  /// Loads the built-in action space \p NameOrFile (`oz`, `odg` or `passes`).
  /// If there is no built-in space of this name, reads the file \p NameOrFile.
  /// Returns System if the file cannot be read, and otherwise the errors of
  /// parse().
  static Expected<ActionSpace> load(llvm::StringRef NameOrFile);
  /// Parses the JSON `{"name": ..., "description": ..., "prologue": PIPELINE,
  /// "actions": [{"name": ..., "pipeline": PIPELINE}, ...]}` and checks every
  /// pipeline with LLVM. Error messages contain \p Source. Returns Malformed if
  /// the JSON has another form, and InvalidArgument if LLVM rejects a pipeline.
  static Expected<ActionSpace> parse(llvm::StringRef Text,
                                     llvm::StringRef Source);

  const std::string &name() const { return Name; }
  const std::string &description() const { return Description; }
  /// The pipeline that always runs before the first action. It contains the
  /// passes that the source code requires, for example for attributes.
  const std::string &prologue() const { return Prologue; }
  std::size_t size() const { return Actions.size(); }
  const Action &operator[](std::size_t Index) const { return Actions[Index]; }

  /// True if each action index runs the same passes in both spaces.
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
