//===- InlineDecisions.h - Decisions of a file about call sites -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads files of inlining decisions. Each line has the form of LLVM's inlining
/// remarks, so the stock compiler also replays them, with
/// -cgscc-inline-replay=FILE and
/// -cgscc-inline-replay-format=LineColumnDiscriminator:
/// \code
///   x: 'f' inlined into 'g' at callsite g:3:7;
///   x: 'f' will not be inlined into 'h' at callsite g:3:7 @ h:10:2.1;
/// \endcode
/// A location lists the functions that contain the call, innermost first. Each
/// has a line relative to the function's start, a column and a discriminator.
/// The file's lines that SizeDecisions.h describes are ignored.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINEDECISIONS_H
#define MLBRIDGE_LLVM_INLINER_INLINEDECISIONS_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/PassManager.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class CallBase;
class DISubprogram;
} // namespace llvm

namespace MLBridge {

/// Decisions about the call sites of a program. Many threads may read an object
/// while no thread changes it.
class InlineDecisions {
public:
  /// The maximum size of a file, in bytes.
  static constexpr std::uint64_t MaxBytes = std::uint64_t(1) << 30;

  struct Decision {
    std::string Caller;
    bool Inline;
  };

  /// Reads the file at \p Path. Returns System if it cannot be read, or
  /// Malformed with the number of the line that has another form or contradicts
  /// an earlier line.
  static Expected<InlineDecisions> read(llvm::StringRef Path);
  /// Parses the contents of a file. Returns Malformed as read() does.
  static Expected<InlineDecisions> parse(llvm::StringRef Text);

  /// The starts of the lines that are not about a call but about source files.
  /// parse() skips such lines, because -mlbridge-size reads them.
  static constexpr llvm::StringLiteral PipelineStart = "pipeline '";
  static constexpr llvm::StringLiteral FileStart = "file '";
  /// True if \p Line has one of these starts.
  static bool isAboutFiles(llvm::StringRef Line);

  /// Returns the index of the decision about a call of \p Callee at \p
  /// Location, or -1 if the file does not decide about this call.
  int find(llvm::StringRef Callee, llvm::StringRef Location) const;
  const Decision &operator[](int Index) const { return Decisions[Index]; }
  std::size_t size() const { return Decisions.size(); }
  /// Gives the decisions the locations that their calls have in \p M, if the
  /// source has changed since the decisions were made. Returns the number of
  /// decisions with a new location. Locations stay the same in functions whose
  /// calls are at the expected places.
  unsigned moveTo(const llvm::Module &M);
  /// Returns a table that maps each call's decisionKey() to the decision.
  llvm::StringMap<bool> table() const;

private:
  Error add(llvm::StringRef Line);

  /// Maps each decisionKey() to an index in Decisions.
  llvm::StringMap<int> Indices;
  std::vector<Decision> Decisions;
};

/// Returns the key of a call site in a table of decisions.
std::string decisionKey(llvm::StringRef Callee, llvm::StringRef Location);

/// Returns the line of a decision file, without a newline.
std::string decisionLine(llvm::StringRef Callee, llvm::StringRef Caller,
                         llvm::StringRef Location, bool Inline);

/// Returns the location of \p Call in the form of a decision file. The location
/// is empty if the call has no debug location.
std::string locationOf(const llvm::CallBase &Call);

/// Returns the name of a function in a file of decisions. Linking files into
/// one module renames local functions, but does not change this name.
llvm::StringRef nameInFile(const llvm::Function &F);
llvm::StringRef nameInFile(const llvm::DISubprogram &Program);

/// Returns the reason why \p Call must not be inlined, or why an attribute
/// decides about it. Returns null if the inliner may decide either way.
const char *whyNoChoice(llvm::CallBase &Call,
                        llvm::FunctionAnalysisManager &FAM);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINEDECISIONS_H
