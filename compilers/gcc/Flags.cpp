//===- Flags.cpp - Lets a model choose optimisation flags ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model chooses optimisation flags for each function. The pass runs after
/// inlining, because gcc does not inline between functions whose flags differ.
///
//===----------------------------------------------------------------------===//

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <context.h>
#include <tree.h>

#include <gimple.h>

#include <function.h>
#include <options.h>
#include <opts.h>
#include <tree-pass.h>

#include "Decisions.h"

namespace {

/// The menu. docs/guides/gcc.md describes its rows.
enum FlagsChoice : int {
  LeaveFlags,
  OptimizeSize,
  UnrollAllLoops,
  NoVectorize,
  VectorizeMore,
  NoInductionVariables,
  NoScheduling,
  LastChoice = NoScheduling
};

constexpr pass_data AboutPass = {
    GIMPLE_PASS, "mlbridge_flags", OPTGROUP_NONE, TV_NONE, 0, 0, 0, 0, 0};

class FlagsPass final : public gimple_opt_pass {
public:
  explicit FlagsPass(Model &Asked)
      : gimple_opt_pass(AboutPass, g), Asked(Asked) {}

  unsigned execute(function *Function) final;

private:
  Model &Asked;
};

} // namespace

static void choose(gcc_options &Options, int Choice) {
  switch (Choice) {
  case OptimizeSize:
    Options.x_optimize_size = 1;
    Options.x_flag_reorder_blocks_algorithm = REORDER_BLOCKS_ALGORITHM_SIMPLE;
    Options.x_flag_tree_pre = 0;
    break;
  case UnrollAllLoops:
    Options.x_flag_unroll_loops = 1;
    Options.x_flag_rename_registers = 1;
    Options.x_flag_web = 1;
    Options.x_param_max_unroll_times = 4;
    break;
  case NoVectorize:
    Options.x_flag_tree_loop_vectorize = 0;
    Options.x_flag_tree_slp_vectorize = 0;
    break;
  case VectorizeMore:
    Options.x_flag_tree_loop_vectorize = 1;
    Options.x_flag_vect_cost_model = VECT_COST_MODEL_DYNAMIC;
    Options.x_flag_peel_loops = 1;
    Options.x_flag_unswitch_loops = 1;
    break;
  case NoInductionVariables:
    Options.x_flag_ivopts = 0;
    Options.x_flag_tree_pre = 0;
    break;
  case NoScheduling:
    Options.x_flag_schedule_insns_after_reload = 0;
    break;
  default:
    break;
  }
}

unsigned FlagsPass::execute(function *Function) {
  // Respect the user's __attribute__((optimize)).
  if (!Asked.isActive() || DECL_FUNCTION_SPECIFIC_OPTIMIZATION(Function->decl))
    return 0;
  countFunction(Function).describeTo(Asked);
  int Choice = Asked.ask(nameOf(Function->decl), LastChoice, LeaveFlags);
  Asked.log(Choice);
  if (Choice == LeaveFlags)
    return 0;
  // global_options contains the options of the current function.
  gcc_options Options = global_options;
  gcc_options Given = global_options_set;
  choose(Options, Choice);
  DECL_FUNCTION_SPECIFIC_OPTIMIZATION(Function->decl) =
      build_optimization_node(&Options, &Given);
  set_cfun(Function, /*force=*/true); // Makes the new options the current ones.
  return 0;
}

void decideFlags(const char *Plugin, Model &Asked) {
  addPass(Plugin, new FlagsPass(Asked), "adjust_alignment",
          PASS_POS_INSERT_AFTER);
}
