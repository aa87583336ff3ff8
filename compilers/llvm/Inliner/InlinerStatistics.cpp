//===- InlinerStatistics.cpp - Statistics of a model in a module ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counts the decisions and formats them as one line.
///
//===----------------------------------------------------------------------===//

#include "Inliner/InlinerStatistics.h"

#include "llvm/Support/FormatVariadic.h"

namespace MLBridge {

void InlinerStatistics::add(const Decision &Made) {
  if (Asked == 0)
    First = Made.Time;
  ++Asked;
  Total += Made.Time;
  Inlined += Made.Inline;
  Deferred += Made.By == ErrorCode::Deferred;
  Failed += Made.By != ErrorCode::Success && Made.By != ErrorCode::Deferred;
  if (Made.Default && Made.By == ErrorCode::Success) {
    ++Compared;
    DefaultInlined += *Made.Default;
    BothInlined += Made.Inline && *Made.Default;
    Agreed += Made.Inline == *Made.Default;
  }
}

std::string InlinerStatistics::str() const {
  auto Micros = [](Clock::duration D) {
    return std::chrono::duration<double, std::micro>(D).count();
  };
  std::string Line =
      llvm::formatv("mlbridge-inliner: {0}: asked={1} inlined={2} deferred={3} "
                    "failed={4}",
                    ModuleName, Asked, Inlined, Deferred, Failed);
  if (Compared != 0)
    Line += llvm::formatv(
        " compared={0} default_inlined={1} both_inlined={2} agreement={3:P}",
        Compared, DefaultInlined, BothInlined, double(Agreed) / Compared);
  return Line + llvm::formatv(" first_us={0:f1} mean_us={1:f1} total_us={2:f1}",
                              Micros(First),
                              Asked > 1 ? Micros(Total - First) / (Asked - 1)
                                        : Micros(First),
                              Micros(Total))
                    .str();
}

} // namespace MLBridge
