//===- RegisterAllocator.h - Allocates registers ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RegisterAllocator assigns physical registers to the virtual registers of a
/// function, as an AllocationPolicy decides. It runs before LLVM's greedy
/// allocator, which keeps the assignments and allocates the rest.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_REGISTERALLOCATOR_H
#define MLBRIDGE_LLVM_REGALLOC_REGISTERALLOCATOR_H

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/AllocationPolicy.h"
#include "RegAlloc/LiveRangeSplitter.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/CalcSpillWeights.h"
#include "llvm/CodeGen/LiveRangeEdit.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/Spiller.h"

#include <memory>
#include <string_view>

namespace MLBridge {

/// Counts of the allocator's actions in a function.
struct AllocationStatistics {
  std::uint64_t Decisions = 0;
  std::uint64_t Assigned = 0;
  std::uint64_t Evicted = 0;
  std::uint64_t Spilled = 0;
  std::uint64_t Split = 0;
  std::uint64_t Recoloured = 0;
  /// Live ranges that were left to greedy.
  std::uint64_t Left = 0;
};

/// True if functions for \p Target can be allocated and measured. Some other
/// targets run the allocator once per register class, or do not allocate
/// registers at all.
bool canAllocateFor(const llvm::Triple &Target);

/// Returns the reason why no policy may decide about a function, or null if
/// one may.
const char *whyNotDecided(const AllocationContext &Context);

/// Returns the reason why RegisterAllocator cannot handle a function, or null
/// if it can. For example, a function may track the liveness of parts of
/// registers.
const char *whyNotAllocatable(const AllocationContext &Context);

/// Assigns free colours to live ranges in the order of spill weights. Returns
/// an estimated cost of spilling the ranges without a free colour: their reads
/// and writes, weighted by block frequencies relative to the entry. Returns 0
/// if no spill is necessary. Does not change \p Context.
double costWithFreeColours(const AllocationContext &Context);

/// Allocates one function and is then destroyed.
class RegisterAllocator final : private llvm::LiveRangeEdit::Delegate {
public:
  /// \p Context and \p Policy must outlive this object. whyNotAllocatable()
  /// must return null for \p Context.
  RegisterAllocator(const AllocationContext &Context, AllocationPolicy &Policy);
  ~RegisterAllocator() override;

  /// Allocates the function. Live ranges that \p Policy leaves to greedy have
  /// no physical register afterwards. If there are any, the highest virtual
  /// register is one of them, because greedy requires this.
  AllocationStatistics run();

private:
  // LiveRangeEdit::Delegate
  bool LRE_CanEraseVirtReg(llvm::Register Reg) override;
  void LRE_WillShrinkVirtReg(llvm::Register Reg) override;

  struct RangeState {
    /// 1 + the index in Ready, or 0.
    unsigned ReadyIndex = 0;
    /// The number of splits that led to this range.
    unsigned Splits = 0;
    /// Limits chains of evictions, as in greedy. A range can evict only ranges
    /// with a lower number, and passes its own number to them.
    unsigned Cascade = 0;
  };

  void enqueue(llvm::Register Reg);
  void enqueueAll(llvm::ArrayRef<llvm::Register> Registers);
  void dequeue(llvm::Register Reg);
  /// Returns the next register, or std::nullopt if there is none or the policy
  /// stops.
  std::optional<llvm::Register> next();

  /// Handles one range. Returns false if the policy stops.
  bool allocate(llvm::LiveInterval &Range);
  /// Returns whether the range was split, or std::nullopt if the policy stops.
  std::optional<bool> trySplit(llvm::LiveInterval &Range,
                               llvm::ArrayRef<Colour> Colours);
  std::string_view applyColour(llvm::LiveInterval &Range,
                               llvm::ArrayRef<Colour> Colours,
                               std::size_t Choice);
  bool assign(llvm::LiveInterval &Range, const Colour &Chosen);
  void spill(llvm::Register Reg);
  /// Assigns a register to \p Range, which has no colour and cannot be spilled.
  /// Moves other ranges to other registers, or back to the queue if they can be
  /// spilled. Returns false if a bounded search finds no solution.
  bool recolour(llvm::LiveInterval &Range);
  /// \p Fixed are the ranges that must not be moved.
  bool recolour(llvm::LiveInterval &Range,
                llvm::SmallVectorImpl<llvm::Register> &Fixed);
  void move(llvm::LiveInterval &Range, llvm::MCRegister To);
  void undoMoves(std::size_t Count);
  void optimizeSpills();
  void leaveRest();

  llvm::SmallVector<Colour, 32> coloursOf(const llvm::LiveInterval &Range);
  /// Fills \p Colour.Evicted. Returns false if one of the ranges must not be
  /// evicted.
  bool findEvicted(const llvm::LiveInterval &Range, Colour &Colour);
  llvm::SmallVector<llvm::Register, 8>
  interfering(const llvm::LiveInterval &Range, llvm::MCRegister Physical);

  const AllocationContext &C;
  AllocationPolicy &Policy;
  llvm::RegisterClassInfo Classes;
  llvm::VirtRegAuxInfo Weights;
  std::unique_ptr<llvm::Spiller> Spiller;
  LiveRangeSplitter Splitter;
  /// The ranges without a physical register. The ranges in Urgent cannot be
  /// spilled and are handled first.
  llvm::SmallVector<const llvm::LiveInterval *, 0> Ready;
  llvm::SmallVector<llvm::Register, 8> Urgent;
  llvm::DenseMap<llvm::Register, RangeState> States;
  llvm::SmallPtrSet<llvm::MachineInstr *, 32> DeadRematerializations;
  /// The moves of the search that recolours: a range, and the register that it
  /// had before, if any.
  llvm::SmallVector<std::pair<llvm::LiveInterval *, llvm::MCRegister>, 16>
      Moves;
  unsigned NextCascade = 1;
  std::uint64_t MaxEvictions = 0;
  AllocationStatistics Statistics;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_REGISTERALLOCATOR_H
