//===- AllocationPolicy.h - Decides about live ranges -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationPolicy makes the decisions of RegisterAllocator. There are four
/// kinds of decisions, one for each agent of RL4ReAl (VenkataKeerthy et al.,
/// CC 2023). The allocator offers only legal choices, so no decision can make
/// wrong code.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONPOLICY_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONPOLICY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/Register.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace llvm {
class LiveInterval;
} // namespace llvm

namespace MLBridge {

struct AllocationContext;
struct SplitPoint;

/// A physical register that a live range can have.
struct Colour {
  llvm::MCRegister Register;
  /// True if the register saves a copy.
  bool IsHint = false;
  /// LLVM's cost of the first use of the register, for example because its
  /// encoding is longer or because the function must save it.
  std::uint8_t Cost = 0;
  /// The live ranges that lose their register to this range. Empty if the
  /// register is free.
  llvm::SmallVector<llvm::Register, 2> Evicted;
  /// The largest spill weight in Evicted.
  float EvictedWeight = 0;
};

/// The choices of task selection.
enum class AllocationTask { Colour, Split };

/// The treatment of evicted live ranges.
enum class EvictionKind {
  Requeue, ///< They become ready again.
  Spill,   ///< They are spilled at once, as in LLVM's allocator `basic`.
};

/// The outcomes of handling a live range.
namespace outcomes {
inline constexpr std::string_view
    None = "none",             ///< No range has been handled yet.
    Assigned = "assigned",     ///< It has a register that was free.
    Evicting = "evicting",     ///< It evicted the ranges in its register.
    Requeued = "requeued",     ///< It is ready again after a spill changed it.
    Split = "split",           ///< Its parts are ready.
    Unsplit = "unsplit",       ///< It could not be split at the chosen place.
    Spilled = "spilled",       ///< It is in memory between its uses.
    Recoloured = "recoloured", ///< It moved the ranges in its register.
    Left = "left";             ///< Greedy will allocate it.
} // namespace outcomes

/// Decides about one machine function. The functions select...() return
/// std::nullopt to leave all remaining live ranges to LLVM's greedy allocator.
class AllocationPolicy {
public:
  virtual ~AllocationPolicy();
  AllocationPolicy(const AllocationPolicy &) = delete;
  AllocationPolicy &operator=(const AllocationPolicy &) = delete;

  /// Node selection. Returns the index in \p Ready of the live range that the
  /// allocator handles next. \p Ready is not empty. Its order changes between
  /// calls.
  virtual std::optional<std::size_t>
  selectNode(llvm::ArrayRef<const llvm::LiveInterval *> Ready) = 0;

  /// True if the policy may split live ranges. If false, the allocator does not
  /// search for split points, and calls neither selectTask() nor selectSplit().
  virtual bool splits() const { return true; }

  /// Task selection for \p Range. The function is called only if \p Range can
  /// be split. \p Colours are the choices of selectColour().
  virtual std::optional<AllocationTask>
  selectTask(const llvm::LiveInterval &Range,
             llvm::ArrayRef<Colour> Colours) = 0;

  /// The result of selectColour() that spills the live range.
  static constexpr std::size_t Spill = ~std::size_t(0);
  /// The result of selectColour() that leaves the live range to greedy.
  static constexpr std::size_t Leave = Spill - 1;

  /// Colouring. Returns an index in \p Colours, or Leave, or Spill if
  /// \p CanSpill. Free colours come before colours that need an eviction. In
  /// both groups, hints come first, and then other registers in the target's
  /// order. \p Colours can be empty only if \p CanSpill is true.
  virtual std::optional<std::size_t>
  selectColour(const llvm::LiveInterval &Range, llvm::ArrayRef<Colour> Colours,
               bool CanSpill) = 0;

  /// Splitting. Returns the index in \p Points at which \p Range is split.
  /// \p Points is not empty. It has loops first, outer loops before inner
  /// loops, and then uses in the order of the code.
  virtual std::optional<std::size_t>
  selectSplit(const llvm::LiveInterval &Range,
              llvm::ArrayRef<SplitPoint> Points) = 0;

  /// Receives the outcome of the last live range, one of MLBridge::outcomes.
  virtual void setOutcome(std::string_view) {}

  virtual EvictionKind evictionKind() const { return EvictionKind::Requeue; }

  /// True if selectColour() receives colours that need an eviction even when a
  /// colour is free. If false, the allocator then does not search for them.
  virtual bool evictsDespiteFreeColours() const { return false; }

protected:
  AllocationPolicy() = default;
};

/// Returns a policy that handles the heaviest live range first, chooses the
/// first free colour, evicts only lighter ranges, and never splits. LLVM's
/// allocator `basic` does the same.
std::unique_ptr<AllocationPolicy> makeWeightOrder();

/// Returns a policy like makeWeightOrder() that only assigns free colours. It
/// leaves other ranges to greedy, so it creates no live ranges.
std::unique_ptr<AllocationPolicy> makeFreeColours();

/// The probabilities of a random policy's decisions, in percent.
struct RandomPolicyOptions {
  unsigned Seed = 1;
  unsigned Split = 20;
  unsigned Spill = 5;
  unsigned Evict = 10;
  /// The probability of leaving the rest to greedy, per 1000 decisions.
  unsigned Stop = 0;
};

/// Returns a policy that chooses at random, for tests. The decisions depend on
/// the seed and on \p Salt, but not on other functions.
std::unique_ptr<AllocationPolicy>
makeRandomPolicy(const RandomPolicyOptions &Options, std::uint64_t Salt);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONPOLICY_H
