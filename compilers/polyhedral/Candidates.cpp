//===- Candidates.cpp - The choices of a kernel ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lists the tile sizes and the orders of loops that a model can choose.
///
//===----------------------------------------------------------------------===//

#include "Candidates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace MLBridge::polyhedral {

namespace {

/// The tile size of the innermost loop inside a tile, and of the loops around
/// it. The innermost loop is vectorized, so it may need another size. 0 leaves
/// a loop untiled.
struct TileSizes {
  int Outer;
  int Innermost;
};

constexpr std::array<TileSizes, 6> Menu = {
    {{0, 0}, {8, 8}, {16, 16}, {32, 32}, {16, 256}, {4, 0}}};

} // namespace

/// Returns all permutations of up to three loops. For deeper bands, returns one
/// order for each loop, which becomes the innermost one.
static std::vector<std::vector<int>> ordersOf(int Depth) {
  std::vector<int> Order(Depth);
  std::iota(Order.begin(), Order.end(), 0);
  std::vector<std::vector<int>> Orders;
  if (Depth <= 3) {
    do
      Orders.push_back(Order);
    while (std::ranges::next_permutation(Order).found);
    return Orders;
  }
  for (int Last = Depth - 1; Last >= 0; --Last) {
    Orders.push_back(Order);
    std::ranges::rotate(Orders.back().begin() + Last,
                        Orders.back().begin() + Last + 1, Orders.back().end());
  }
  return Orders;
}

std::vector<Choice> candidatesOf(const Scheduler &S) {
  std::vector<Choice> Found = {Choice()};
  for (int Number = 1; Number < S.numSchedules(); ++Number) {
    std::vector<std::vector<int>> Orders = ordersOf(S.depth(Number));
    // If there is also a schedule without fusion, the fused loops keep isl's
    // order.
    if (Number + 1 < S.numSchedules())
      Orders.resize(1);
    for (const std::vector<int> &Order : Orders)
      for (const TileSizes &Sizes : Menu) {
        Choice New = {Number, std::vector<int>(Order.size(), Sizes.Outer),
                      Order};
        if (!Order.empty())
          New.Sizes[Order.back()] = Sizes.Innermost;
        // A tile with all iterations of the loop is the same as no tile.
        for (std::size_t I = 0; I < New.Sizes.size(); ++I)
          if (New.Sizes[I] >= S.extents(Number)[I])
            New.Sizes[I] = 0;
        if (std::ranges::find(Found, New) == Found.end())
          Found.push_back(std::move(New));
      }
  }
  return Found;
}

static std::vector<int> parseNumbers(std::string_view Text) {
  std::vector<int> Found;
  const char *At = Text.data();
  const char *const End = At + Text.size();
  while (At != End) {
    int Number = 0;
    const auto [Rest, Code] = std::from_chars(At, End, Number);
    if (Code != std::errc() ||
        (Rest != End && (*Rest != ',' || Rest + 1 == End)))
      throw UserError("choice: expected numbers and commas, found '" +
                      std::string(Text) + "'");
    Found.push_back(Number);
    At = Rest == End ? End : Rest + 1;
  }
  return Found;
}

Choice parseChoice(const std::string &Text, const Scheduler &S) {
  std::array<std::string, 3> Parts;
  std::size_t Count = 0;
  for (std::size_t At = 0; At <= Text.size();) {
    const std::size_t End = std::min(Text.find(':', At), Text.size());
    if (Count == Parts.size())
      throw UserError("choice: expected SCHEDULE:SIZES:ORDER, found '" + Text +
                      "'");
    Parts[Count++] = Text.substr(At, End - At);
    At = End + 1;
  }
  const std::vector<int> Schedule = parseNumbers(Parts[0]);
  if (Schedule.size() != 1 || Schedule[0] < 0 ||
      Schedule[0] >= S.numSchedules())
    throw UserError("choice: expected a schedule from 0 to " +
                    std::to_string(S.numSchedules() - 1) + ", found '" +
                    Parts[0] + "'");
  Choice Found = {Schedule[0], parseNumbers(Parts[1]), parseNumbers(Parts[2])};
  const int Depth = S.depth(Found.Schedule);
  if (Count < 2)
    Found.Sizes.assign(Depth, 0);
  if (Count < 3) {
    Found.Order.resize(Depth);
    std::iota(Found.Order.begin(), Found.Order.end(), 0);
  }
  S.check(Found);
  return Found;
}

std::string textOf(const Choice &C) {
  std::string Text = std::to_string(C.Schedule);
  if (C.Schedule == 0)
    return Text;
  for (const std::vector<int> *Numbers : {&C.Sizes, &C.Order}) {
    Text += ':';
    for (std::size_t I = 0; I < Numbers->size(); ++I)
      Text += (I ? "," : "") + std::to_string((*Numbers)[I]);
  }
  return Text;
}

} // namespace MLBridge::polyhedral
