//===- SizeDecisions.h - Decisions about files ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the lines of a decision file that are about source files.
/// InlineDecisions.h reads the other lines.
/// \code
///   pipeline 'short' is globaldce,function(sroa,instcombine)
///   file '*' has pipeline 'short'
///   file 'a.c' has pipeline 'stock'
///   file 'a.c' outlines sequences of 4
///   file 'a.c' does not outline from 'f'
/// \endcode
/// `*` stands for all files without a line of the same kind, and `stock` for
/// the pipeline of clang -Oz. `sequences of 4` sets LLVM's option
/// -outliner-benefit-threshold=4: the bytes that outlining a sequence must
/// save.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEDECISIONS_H
#define MLBRIDGE_LLVM_SIZE_SIZEDECISIONS_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>
#include <utility>

namespace MLBridge {

/// The decisions about the source files of a program.
class SizeDecisions {
public:
  /// The settings of LLVM's machine outliner for a file.
  struct Outlining {
    /// LLVM's -outliner-benefit-threshold. If 0, the outliner does not run.
    unsigned Least = 0;
    /// Functions that stay whole.
    llvm::StringSet<> Whole;
  };

  /// Reads the file at \p Path. Returns System if it cannot be read, or
  /// Malformed with the number of a line about files that has another form or
  /// contradicts an earlier line.
  static Expected<SizeDecisions> read(llvm::StringRef Path);
  /// Parses the contents of a file. Returns Malformed as read() does.
  static Expected<SizeDecisions> parse(llvm::StringRef Text);

  /// Stands for all files without a line of their own.
  static constexpr llvm::StringLiteral Others = "*";

  /// Returns the name and the passes of the pipeline for a source file. The
  /// strings are empty for the pipeline of clang -Oz.
  std::pair<llvm::StringRef, llvm::StringRef>
  pipelineFor(llvm::StringRef Source) const;
  /// Returns the line that pipelineFor() finds, without a newline.
  static std::string pipelineLine(llvm::StringRef Source, llvm::StringRef Name);
  /// Returns the line that defines a pipeline, without a newline.
  static std::string definitionLine(llvm::StringRef Name,
                                    llvm::StringRef Pipeline);
  const Outlining &outliningFor(llvm::StringRef Source) const;

private:
  Error add(llvm::StringRef Line);

  /// Maps names to pipelines.
  llvm::StringMap<std::string> Pipelines;
  /// Maps source files to names of pipelines.
  llvm::StringMap<std::string> PipelineOf;
  llvm::StringMap<Outlining> OutliningOf;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEDECISIONS_H
