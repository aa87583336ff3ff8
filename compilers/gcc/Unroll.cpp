//===- Unroll.cpp - Lets a model choose unroll factors --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model chooses the factor by which each innermost loop is unrolled.
///
//===----------------------------------------------------------------------===//

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <context.h>
#include <tree.h>

#include <gimple.h>

#include <cfgloop.h>
#include <gimple-iterator.h>
#include <sreal.h>
#include <tree-pass.h>
#include <tree-scalar-evolution.h>
#include <tree-ssa-loop-niter.h>

#include "Decisions.h"

/// The maximum unroll factor. A larger reply is treated as an error of the
/// model.
static constexpr int MostTimes = 64;

namespace {

constexpr pass_data AboutPass = {GIMPLE_PASS,
                                 "mlbridge_unroll",
                                 OPTGROUP_LOOP,
                                 TV_NONE,
                                 PROP_cfg,
                                 0,
                                 0,
                                 0,
                                 0};

class UnrollPass final : public gimple_opt_pass {
public:
  explicit UnrollPass(Model &Asked)
      : gimple_opt_pass(AboutPass, g), Asked(Asked) {}

  unsigned execute(function *Function) final {
    for (class loop *Loop : loops_list(Function, LI_ONLY_INNERMOST))
      decide(Function, *Loop);
    return 0;
  }

private:
  void decide(function *Function, class loop &Loop);
  void describe(function *Function, class loop &Loop);

  Model &Asked;
};

} // namespace

void UnrollPass::describe(function *Function, class loop &Loop) {
  int32_t Instructions = 0;
  int32_t Loads = 0;
  int32_t Stores = 0;
  int32_t Calls = 0;
  basic_block *Blocks = get_loop_body(&Loop);
  for (unsigned I = 0; I < Loop.num_nodes; ++I)
    for (auto It = gsi_start_nondebug_bb(Blocks[I]); !gsi_end_p(It);
         gsi_next_nondebug(&It)) {
      ++Instructions;
      Loads += gimple_assign_load_p(gsi_stmt(It));
      Stores += gimple_store_p(gsi_stmt(It));
      Calls += is_gimple_call(gsi_stmt(It));
    }
  XDELETEVEC(Blocks);
  profile_count Entry = ENTRY_BLOCK_PTR_FOR_FN(Function)->count;
  double Frequency = Loop.header->count.to_sreal_scale(Entry).to_double();
  bool HasTripCount = single_exit(&Loop) &&
                      number_of_latch_executions(&Loop) != chrec_dont_know;
  // gcc's estimate of the iterations is -1 if it has none.
  Asked.set("instructions", Instructions)
      .set("blocks", static_cast<int32_t>(Loop.num_nodes))
      .set("depth", static_cast<int32_t>(loop_depth(&Loop)))
      .set("iterations",
           static_cast<int64_t>(estimated_loop_iterations_int(&Loop)))
      .set("loads", Loads)
      .set("stores", Stores)
      .set("calls", Calls)
      .set("has_trip_count", static_cast<int32_t>(HasTripCount))
      .set("frequency", static_cast<float>(Frequency));
}

void UnrollPass::decide(function *Function, class loop &Loop) {
  // Respect `#pragma GCC unroll`, because it is the user's decision.
  if (!Asked.isActive() || Loop.unroll != 0)
    return;
  describe(Function, Loop);
  int Times = Asked.ask(nameOf(Function->decl), MostTimes, 0);
  Asked.log(Times);
  if (Times == 0) // The model leaves the loop to gcc.
    return;
  Loop.unroll = static_cast<unsigned short>(Times);
  Function->has_unroll = true;
}

void decideUnrolling(const char *Plugin, Model &Asked) {
  addPass(Plugin, new UnrollPass(Asked), "loopinit", PASS_POS_INSERT_AFTER);
}
