//===- LoopPolicy.h - Decides about loops -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A LoopPolicy decides how loops are distributed, and by which factors they
/// are vectorized, interleaved and unrolled.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPOLICY_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPOLICY_H

#include "LoopDistribution/DependenceGraph.h"
#include "LoopDistribution/LoopOptions.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

class LoopPolicy {
public:
  virtual ~LoopPolicy() = default;
  /// Returns a partition (see DistributionPlan::make()), or std::nullopt to
  /// leave the loop as it is. \p Graph has at least two seeds. The returned
  /// partition may be illegal.
  virtual std::optional<std::vector<std::int64_t>>
  partition(const DependenceGraph &Graph, const LoopAnalyses &Analyses) = 0;
  /// Returns an index in factorChoices(), or std::nullopt for LLVM's choice. \p
  /// Legal comes from legalFactors(). The returned index may name an illegal
  /// choice.
  virtual std::optional<std::int64_t> factors(const DependenceGraph &Graph,
                                              const LoopAnalyses &Analyses,
                                              llvm::ArrayRef<float> Legal) = 0;
  /// Writes the policy's buffers, for example a log.
  virtual void flush() {}
};

/// Returns an error unless \p Choice is the index of a non-zero element of the
/// `action_mask` \p Mask. In the message, \p What is the name of the choice.
Error checkChoice(llvm::StringRef What, llvm::ArrayRef<float> Mask,
                  std::int64_t Choice);

/// Returns the policy that \p Options name for \p M, or null if no option names
/// one. If a model cannot be opened, reports the error and returns null.
std::unique_ptr<LoopPolicy> makeLoopPolicy(const LoopOptions &Options,
                                           llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPOLICY_H
