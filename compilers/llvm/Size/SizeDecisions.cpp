//===- SizeDecisions.cpp - Decisions about files --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the lines about files.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeDecisions.h"

#include "Inliner/InlineDecisions.h"
#include "Support/ReadFile.h"

using namespace llvm;

namespace MLBridge {

static constexpr StringLiteral PipelineStart = InlineDecisions::PipelineStart;
static constexpr StringLiteral Is = "' is ";
static constexpr StringLiteral FileStart = InlineDecisions::FileStart;
static constexpr StringLiteral HasPipeline = "' has pipeline '";
static constexpr StringLiteral Outlines = "' outlines sequences of ";
static constexpr StringLiteral DoesNotOutline = "' does not outline from '";
/// The name of the pipeline of clang -Oz.
static constexpr StringLiteral StockName = "stock";

std::string SizeDecisions::pipelineLine(StringRef Source, StringRef Name) {
  return (FileStart + Source + HasPipeline + Name + "'").str();
}

std::string SizeDecisions::definitionLine(StringRef Name, StringRef Passes) {
  return (PipelineStart + Name + Is + Passes).str();
}

static Error contradicts(const Twine &What) {
  return {ErrorCode::Malformed, (What + " has two different decisions").str()};
}

Error SizeDecisions::add(StringRef Line) {
  StringRef Rest = Line;
  if (Rest.consume_front(PipelineStart)) {
    const auto [Name, Passes] = Rest.split(Is);
    if (Name == StockName)
      return {ErrorCode::Malformed,
              "the pipeline 'stock' is the one of clang -Oz; use another name"};
    if (!Name.empty() && !Passes.empty()) {
      if (Pipelines.try_emplace(Name, Passes.str()).first->second != Passes)
        return contradicts("pipeline '" + Name + "'");
      return Error::success();
    }
  } else if (Rest.consume_front(FileStart)) {
    if (const auto [Of, Name] = Rest.split(HasPipeline); Name.ends_with("'")) {
      const StringRef Known = Name.drop_back();
      if (Known != StockName && !Pipelines.contains(Known))
        return {ErrorCode::Malformed,
                ("no earlier line defines the pipeline '" + Known + "'").str()};
      if (PipelineOf.try_emplace(Of, Known.str()).first->second != Known)
        return contradicts("file '" + Of + "'");
      return Error::success();
    }
    const auto [Of, Least] = Rest.split(Outlines);
    unsigned Number = 0;
    if (!Least.empty() && !Least.getAsInteger(10, Number) && Number != 0) {
      unsigned &Known = OutliningOf[Of].Least;
      if (Known != 0 && Known != Number)
        return contradicts("file '" + Of + "'");
      Known = Number;
      return Error::success();
    }
    if (const auto [From, Name] = Rest.split(DoesNotOutline);
        Name.ends_with("'")) {
      OutliningOf[From].Whole.insert(Name.drop_back());
      return Error::success();
    }
  }
  return {ErrorCode::Malformed,
          "expected \"pipeline 'NAME' is PASSES\", \"file 'FILE' has pipeline "
          "'NAME'\", \"file 'FILE' outlines sequences of NUMBER\" or \"file "
          "'FILE' does not outline from 'FUNCTION'\", found \"" +
              Line.take_front(200).str() + "\""};
}

Expected<SizeDecisions> SizeDecisions::parse(StringRef Text) {
  SizeDecisions Result;
  Error Failure = parseLines(Text, [&](StringRef Line) {
    return InlineDecisions::isAboutFiles(Line) ? Result.add(Line)
                                               : Error::success();
  });
  if (Failure)
    return Failure;
  return Result;
}

Expected<SizeDecisions> SizeDecisions::read(StringRef Path) {
  Expected<std::unique_ptr<MemoryBuffer>> Contents =
      readFile(Path, InlineDecisions::MaxBytes);
  if (!Contents)
    return Contents.takeError();
  return parse((*Contents)->getBuffer());
}

std::pair<StringRef, StringRef>
SizeDecisions::pipelineFor(StringRef Source) const {
  auto Of = PipelineOf.find(Source);
  if (Of == PipelineOf.end())
    Of = PipelineOf.find(Others);
  if (Of == PipelineOf.end() || Of->second == StockName)
    return {};
  return {Of->second, Pipelines.find(Of->second)->second};
}

const SizeDecisions::Outlining &
SizeDecisions::outliningFor(StringRef Source) const {
  static const Outlining None;
  auto Of = OutliningOf.find(Source);
  if (Of == OutliningOf.end())
    Of = OutliningOf.find(Others);
  return Of == OutliningOf.end() ? None : Of->second;
}

} // namespace MLBridge
