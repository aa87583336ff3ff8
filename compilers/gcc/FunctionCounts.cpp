//===- FunctionCounts.cpp - What a function contains ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counts the blocks, instructions and calls of a function. Also defines
/// helpers that the decisions share.
///
//===----------------------------------------------------------------------===//

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <tree.h>

#include <gimple.h>

#include <cfgloop.h>
#include <gimple-iterator.h>
#include <tree-pass.h>

#include "Decisions.h"

FunctionCounts countFunction(function *Function) {
  FunctionCounts Counts;
  Counts.BasicBlocks = n_basic_blocks_for_fn(Function) - NUM_FIXED_BLOCKS;
  basic_block Block = nullptr;
  FOR_EACH_BB_FN(Block, Function) {
    if (EDGE_COUNT(Block->succs) > 1)
      Counts.ConditionallyExecutedBlocks +=
          static_cast<int32_t>(EDGE_COUNT(Block->succs));
    for (auto It = gsi_start_nondebug_bb(Block); !gsi_end_p(It);
         gsi_next_nondebug(&It)) {
      const gimple *Statement = gsi_stmt(It);
      ++Counts.Instructions;
      Counts.Loads += gimple_assign_load_p(Statement);
      Counts.Stores += gimple_store_p(Statement);
      Counts.Calls += is_gimple_call(Statement);
    }
  }
  if (!loops_for_fn(Function))
    return Counts;
  for (class loop *Loop : loops_list(Function, 0)) {
    auto Depth = static_cast<int32_t>(loop_depth(Loop));
    Counts.TopLevelLoops += Depth == 1;
    Counts.MaxLoopDepth = MAX(Counts.MaxLoopDepth, Depth);
  }
  return Counts;
}

void FunctionCounts::describeTo(Model &Asked) const {
  Asked.set("basic_block_count", BasicBlocks)
      .set("blocks_reached_from_conditional_instruction",
           ConditionallyExecutedBlocks)
      .set("total_instruction_count", Instructions)
      .set("load_inst_count", Loads)
      .set("store_inst_count", Stores)
      .set("call_inst_count", Calls)
      .set("top_level_loop_count", TopLevelLoops)
      .set("max_loop_depth", MaxLoopDepth);
}

void addPass(const char *Plugin, opt_pass *Pass, const char *Reference,
             pass_positioning_ops Where) {
  register_pass_info Info = {Pass, Reference, 1, Where};
  register_callback(Plugin, PLUGIN_PASS_MANAGER_SETUP, nullptr, &Info);
}

const char *nameOf(tree Function) {
  return IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(Function));
}
