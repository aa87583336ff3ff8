//===- Scheduler.cpp - Legal orders of a kernel ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes dependences, schedules and tiles with isl.
///
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include <algorithm>
#include <isl/ilp.h>
#include <isl/options.h>

namespace MLBridge::polyhedral {

isl::union_map dependencesOf(const Kernel &K, isl::union_map &Flow) {
  const isl::union_flow Raw = isl::union_access_info(K.Reads)
                                  .set_must_source(K.Writes)
                                  .set_schedule_map(K.Order)
                                  .compute_flow();
  Flow = Raw.must_dependence();
  const isl::union_flow Others = isl::union_access_info(K.Writes)
                                     .set_must_source(K.Writes)
                                     .set_may_source(K.Reads)
                                     .set_schedule_map(K.Order)
                                     .compute_flow();
  return Flow.unite(Others.must_dependence()).unite(Others.may_dependence());
}

bool isTilable(const isl::schedule_node &Node) {
  if (!Node.isa<isl::schedule_node_band>())
    return false;
  const auto Band = Node.as<isl::schedule_node_band>();
  return Band.permutable() && Band.n_member() >= 2 &&
         Band.n_member() <= MaxDepth;
}

std::int64_t tripCount(const isl::schedule_node_band &Band, int Member) {
  // Restrict the schedule to the domain, because it has no bounds outside.
  const isl::union_set Inside =
      isl::manage(isl_schedule_node_get_domain(Band.get()));
  const isl::union_pw_aff Times =
      Band.partial_schedule().at(Member).intersect_domain(Inside);
  const isl::val Last = isl::manage(isl_union_pw_aff_max_val(Times.copy()));
  const isl::val First = isl::manage(isl_union_pw_aff_min_val(Times.copy()));
  return Last.sub(First).num_si() + 1;
}

std::vector<int> shortened(const std::vector<int> &Order, int Count) {
  std::vector<int> Result;
  std::ranges::copy_if(Order, std::back_inserter(Result),
                       [&](int Number) { return Number < Count; });
  return Result;
}

Scheduler::Scheduler(const Kernel &K) : Source(K) {
  isl::union_map Flow;
  const isl::union_map All = dependencesOf(K, Flow);
  const auto Constraints = isl::schedule_constraints::on_domain(K.Domain)
                               .set_validity(All)
                               .set_coincidence(All)
                               .set_proximity(Flow);
  isl_ctx *Context = K.Domain.ctx().get();
  isl_options_set_schedule_maximize_band_depth(Context, 1);
  for (const bool Separate : {false, true}) {
    isl_options_set_schedule_serialize_sccs(Context, Separate);
    const isl::schedule New = Constraints.compute_schedule();
    if (!Schedules.empty() &&
        isl_schedule_plain_is_equal(Schedules[0].get(), New.get()) !=
            isl_bool_false)
      break;
    Schedules.push_back(New);
    std::vector<std::int64_t> &Trips = Extents.emplace_back();
    New.root().foreach_descendant_top_down([&](const isl::schedule_node &Node) {
      if (!isTilable(Node))
        return true;
      const auto Band = Node.as<isl::schedule_node_band>();
      Trips.resize(std::max<std::size_t>(Trips.size(), Band.n_member()));
      for (unsigned I = 0; I < Band.n_member(); ++I)
        Trips[I] = std::max(Trips[I], tripCount(Band, I));
      return true;
    });
  }
}

int Scheduler::depth(int Schedule) const {
  return Schedule == 0 ? 0 : static_cast<int>(extents(Schedule).size());
}

void Scheduler::check(const Choice &C) const {
  if (C.Schedule < 0 || C.Schedule >= numSchedules())
    throw UserError("choice: expected a schedule from 0 to " +
                    std::to_string(numSchedules() - 1) + ", found " +
                    std::to_string(C.Schedule));
  const auto Depth = static_cast<std::size_t>(depth(C.Schedule));
  if (C.Sizes.size() != Depth || C.Order.size() != Depth)
    throw UserError("choice: expected " + std::to_string(Depth) +
                    " sizes and an order of as many loops");
  for (int I = 0; I < static_cast<int>(Depth); ++I)
    if (C.Sizes[I] < 0 || std::ranges::count(C.Order, I) != 1)
      throw UserError("choice: expected sizes from 0 and a permutation of the "
                      "loops as order");
}

/// Returns a schedule of several loops, each given as an affine function.
static isl::multi_union_pw_aff
bandOf(const isl::schedule_node &Node,
       const std::vector<isl::union_pw_aff> &Loops) {
  isl_ctx *Context = Node.ctx().get();
  isl_union_pw_aff_list *List =
      isl_union_pw_aff_list_alloc(Context, static_cast<int>(Loops.size()));
  for (const isl::union_pw_aff &Loop : Loops)
    List = isl_union_pw_aff_list_add(List, Loop.copy());
  isl_space *Space = isl_space_add_dims(
      isl_space_set_from_params(isl_space_params_alloc(Context, 0)),
      isl_dim_set, static_cast<unsigned>(Loops.size()));
  return isl::manage(
      isl_multi_union_pw_aff_from_union_pw_aff_list(Space, List));
}

/// Returns the loop over tiles: floor(Loop / Size).
static isl::union_pw_aff tileLoop(const isl::union_pw_aff &Loop, int Size) {
  isl_val *Divisor = isl_val_int_from_si(Loop.ctx().get(), Size);
  return isl::manage(isl_union_pw_aff_floor(
      isl_union_pw_aff_scale_down_val(Loop.copy(), Divisor)));
}

/// Replaces a band by its loops over tiles and its loops inside a tile.
static isl::schedule_node tileBand(isl::schedule_node Node, const Choice &C) {
  const auto Band = Node.as<isl::schedule_node_band>();
  const int Count = static_cast<int>(Band.n_member());
  const isl::multi_union_pw_aff Loops = Band.partial_schedule();
  std::vector<isl::union_pw_aff> Outer;
  std::vector<isl::union_pw_aff> Inner;
  for (int I = 0; I < Count; ++I)
    if (C.Sizes[I] > 0 && C.Sizes[I] < tripCount(Band, I))
      Outer.push_back(tileLoop(Loops.at(I), C.Sizes[I]));
  for (const int I : shortened(C.Order, Count))
    Inner.push_back(Loops.at(I));
  Node = isl::manage(isl_schedule_node_delete(Node.release()));
  Node = Node.insert_partial_schedule(bandOf(Node, Inner));
  return Outer.empty() ? Node
                       : Node.insert_partial_schedule(bandOf(Node, Outer));
}

isl::ast_node Scheduler::loops(const Choice &C) const {
  const isl::ast_build Build(Source.Domain.ctx());
  if (C.Schedule == 0)
    return Build.node_from_schedule_map(Source.Order);
  const isl::schedule_node Root =
      schedule(C.Schedule)
          .root()
          .map_descendant_bottom_up([&](const isl::schedule_node &Node) {
            return isTilable(Node) ? tileBand(Node, C) : Node;
          });
  return Build.node_from(Root.schedule());
}

} // namespace MLBridge::polyhedral
