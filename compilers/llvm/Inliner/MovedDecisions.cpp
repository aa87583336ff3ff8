//===- MovedDecisions.cpp - Decisions about edited source files -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// After an edit of a function, its calls are on other lines than in a file of
/// decisions. To find these calls, this file aligns two sequences: the calls
/// that the decisions name, and the calls in the module. The best alignment
/// finds many calls and moves neighbouring calls by the same number of lines.
///
//===----------------------------------------------------------------------===//

#include "Inliner/InlineDecisions.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>

using namespace llvm;

namespace MLBridge {
namespace {

/// A call in the source code of a function.
struct SourceCall {
  /// Relative to the function's start.
  std::int32_t Line = 0;
  std::uint32_t Column = 0, Discriminator = 0;
  /// Empty if the call is indirect.
  StringRef Callee;
  std::strong_ordering operator<=>(const SourceCall &) const = default;
};

/// A part of a location: a call, and the function that contains it.
struct Frame {
  StringRef Function;
  SourceCall Call;
};

using CallsByFunction = StringMap<std::vector<SourceCall>>;
/// Maps calls of a file of decisions to calls in a module.
using Moves = std::map<SourceCall, SourceCall>;

/// A decision and its location. The location is empty if it has another form.
struct Located {
  StringRef Key;
  int Index;
  SmallVector<Frame, 4> Frames;
};

/// Two calls that may be the same, and the best alignment that ends with them.
struct AlignedPair {
  std::size_t Old = 0, New = 0;
  std::int64_t Shift = 0;
  std::size_t Cost = 0;
  /// The index of the previous pair, or -1.
  std::ptrdiff_t Previous = -1;
};

// The costs of an alignment. Few edits change columns, so a call at the same
// column of another line is more probable than at another column of its line.
constexpr std::size_t NotFound = 14; // A decision has no call.
constexpr std::size_t MovedDown = 6; // Lines were added before a call.
constexpr std::size_t MovedUp = 9;   // Lines were removed before it.
constexpr std::size_t OtherColumn = 7;
constexpr std::size_t OtherDiscriminator = 2;

/// The time of an alignment grows with the square of the number of pairs.
constexpr std::size_t MaxPairs = 4096;

} // namespace

/// Returns the frames of \p Location. The result is empty if \p Location does
/// not have the form of locationOf().
static SmallVector<Frame, 4> framesOf(StringRef Callee, StringRef Location) {
  SmallVector<Frame, 4> Result;
  SmallVector<StringRef, 4> Parts;
  Location.split(Parts, " @ ");
  for (const StringRef Part : Parts) {
    const auto [Before, Place] = Part.rsplit(':');
    const auto [Function, LineText] = Before.rsplit(':');
    const auto [ColumnText, After] = Place.split('.');
    std::uint32_t Line = 0, Column = 0, Discriminator = 0;
    if (LineText.getAsInteger(10, Line) ||
        ColumnText.getAsInteger(10, Column) ||
        (!After.empty() && After.getAsInteger(10, Discriminator)))
      return {};
    Result.push_back(
        {Function,
         {static_cast<std::int32_t>(Line), Column, Discriminator, Callee}});
    Callee = Function;
  }
  return Result;
}

/// The inverse of framesOf().
static std::string locationText(ArrayRef<Frame> Frames) {
  std::string Result;
  raw_string_ostream OS(Result);
  ListSeparator Separator(" @ ");
  for (const auto &[Name, Call] : Frames) {
    OS << Separator << Name << ':' << static_cast<std::uint32_t>(Call.Line)
       << ':' << Call.Column;
    if (Call.Discriminator != 0)
      OS << '.' << Call.Discriminator;
  }
  return Result;
}

static void sortUnique(std::vector<SourceCall> &Calls) {
  std::ranges::sort(Calls);
  const auto Rest = std::ranges::unique(Calls);
  Calls.erase(Rest.begin(), Rest.end());
}

/// Returns the calls of the functions in \p Wanted that \p M contains. Inlined
/// calls are calls of the function from which they were inlined.
static CallsByFunction callsOf(const Module &M, const CallsByFunction &Wanted) {
  CallsByFunction Result;
  for (const Function &F : M)
    for (const Instruction &I : instructions(F)) {
      const auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || Call->getIntrinsicID() != Intrinsic::not_intrinsic)
        continue;
      const Function *Called = Call->getCalledFunction();
      StringRef Callee = Called ? nameInFile(*Called) : StringRef();
      for (const DILocation *At = Call->getDebugLoc(); At;
           At = At->getInlinedAt()) {
        const DISubprogram &In = *At->getScope()->getSubprogram();
        const StringRef Name = nameInFile(In);
        if (Wanted.contains(Name))
          Result[Name].push_back(
              {static_cast<std::int32_t>(At->getLine() - In.getLine()),
               At->getColumn(), At->getBaseDiscriminator(), Callee});
        Callee = Name;
      }
    }
  for (auto &Calls : Result)
    sortUnique(Calls.second);
  return Result;
}

/// True if \p New may be the call \p Old at another place.
static bool maybeSame(const SourceCall &Old, const SourceCall &New) {
  return New.Callee.empty() || New.Callee == Old.Callee;
}

/// Ignores discriminators, because they may differ between the files that
/// include a function.
static bool isAtSamePlace(const SourceCall &Old, const SourceCall &New) {
  return maybeSame(Old, New) && Old.Line == New.Line &&
         Old.Column == New.Column;
}

/// Aligns the calls \p Old with \p New. Both are sorted. Returns nothing if
/// there are too many.
static std::optional<Moves> alignCalls(ArrayRef<SourceCall> Old,
                                       ArrayRef<SourceCall> New) {
  auto ShiftCost = [](std::int64_t Before, std::int64_t After) {
    if (After == Before)
      return std::size_t(0);
    return After > Before ? MovedDown : MovedUp;
  };
  std::vector<AlignedPair> Pairs;
  for (const auto &[OldIndex, From] : enumerate(Old))
    for (const auto &[NewIndex, To] : enumerate(New)) {
      if (!maybeSame(From, To))
        continue;
      if (Pairs.size() == MaxPairs)
        return std::nullopt;
      AlignedPair Pair{OldIndex, NewIndex, std::int64_t(To.Line) - From.Line};
      Pair.Cost = NotFound * OldIndex + ShiftCost(0, Pair.Shift);
      for (const auto &[Index, Before] : enumerate(Pairs)) {
        if (Before.Old >= OldIndex || Before.New >= NewIndex)
          continue;
        const std::size_t Cost = Before.Cost +
                                 NotFound * (OldIndex - Before.Old - 1) +
                                 ShiftCost(Before.Shift, Pair.Shift);
        if (Cost < Pair.Cost) {
          Pair.Cost = Cost;
          Pair.Previous = static_cast<std::ptrdiff_t>(Index);
        }
      }
      Pair.Cost += From.Column == To.Column ? 0 : OtherColumn;
      Pair.Cost +=
          From.Discriminator == To.Discriminator ? 0 : OtherDiscriminator;
      Pairs.push_back(Pair);
    }
  std::ptrdiff_t Last = -1;
  std::size_t Least = NotFound * Old.size();
  for (const auto &[Index, Pair] : enumerate(Pairs)) {
    const std::size_t Cost = Pair.Cost + NotFound * (Old.size() - 1 - Pair.Old);
    if (Cost < Least) {
      Least = Cost;
      Last = static_cast<std::ptrdiff_t>(Index);
    }
  }
  Moves Result;
  for (; Last >= 0; Last = Pairs[Last].Previous)
    Result.emplace(Old[Pairs[Last].Old], New[Pairs[Last].New]);
  return Result;
}

unsigned InlineDecisions::moveTo(const Module &M) {
  std::vector<Located> All;
  All.reserve(Indices.size());
  CallsByFunction Named;
  for (const auto &Entry : Indices) {
    const auto [Callee, Location] = Entry.first().split('\n');
    All.push_back({Entry.first(), Entry.second, framesOf(Callee, Location)});
    for (const auto &[Name, Call] : All.back().Frames)
      // A call without a column is several calls that LLVM has merged.
      if (Call.Column != 0)
        Named[Name].push_back(Call);
  }

  StringMap<Moves> Edited;
  for (const auto &Entry : callsOf(M, Named)) {
    std::vector<SourceCall> &Old = Named[Entry.first()];
    sortUnique(Old);
    const bool IsUnchanged = all_of(Old, [&](const SourceCall &Call) {
      return any_of(Entry.second, [&](const SourceCall &New) {
        return isAtSamePlace(Call, New);
      });
    });
    if (IsUnchanged)
      continue;
    if (std::optional<Moves> Found = alignCalls(Old, Entry.second))
      Edited[Entry.first()] = std::move(*Found);
  }
  if (Edited.empty())
    return 0;

  StringMap<int> Result;
  std::vector<const Located *> Lost;
  unsigned Count = 0;
  for (Located &One : All) {
    bool IsFound = !One.Frames.empty();
    for (auto &[Name, Call] : One.Frames) {
      const auto In = Edited.find(Name);
      if (In == Edited.end() || Call.Column == 0)
        continue;
      const auto At = In->second.find(Call);
      IsFound &= At != In->second.end();
      if (At != In->second.end())
        Call = At->second;
    }
    if (!IsFound) {
      Lost.push_back(&One);
      continue;
    }
    const std::string Key =
        decisionKey(One.Key.split('\n').first, locationText(One.Frames));
    Count += Key == One.Key ? 0 : 1;
    Result.try_emplace(Key, One.Index);
  }
  // Such a call may appear later, if LLVM makes an indirect call direct.
  for (const Located *One : Lost)
    Result.try_emplace(One->Key, One->Index);
  Indices = std::move(Result);
  return Count;
}

} // namespace MLBridge
