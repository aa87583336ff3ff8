//===- unroll.cpp - Stock gcc asks a model how often to unroll loops ------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A plug-in for gcc over the C API: each innermost loop is unrolled as often
/// as a model says. Run `.venv/bin/python compilers/gcc/unroll.py`, then
///
///     gcc -O2 -fplugin=build/release/compilers/gcc/unroll.so
///         -fplugin-arg-unroll-model=pipe:/tmp/unroll -c x.c
///
/// gcc takes one `=` an argument; a spec that has some is for the environment's
/// UNROLL_MODEL. Without a model, gcc decides as it would without the plug-in.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

// gcc's headers do not include what they need: their order matters.
#include <gcc-plugin.h>

#include <context.h>
#include <plugin-version.h>
#include <tree.h>

#include <gimple.h>

#include <cfgloop.h>
#include <diagnostic-core.h>
#include <gimple-iterator.h>
#include <tree-pass.h>
#include <tree-ssa-loop-niter.h>

// gcc loads no plug-in that does not say so.
int plugin_is_GPL_compatible;

namespace {

/// The most that is sensible; a model that says more is mistaken.
constexpr int MostTimes = 64;

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
  UnrollPass(gcc::context *Context, MLBridgeModelRunnerRef Model)
      : gimple_opt_pass(AboutPass, Context), Model(Model) {}

  unsigned execute(function *Function) final {
    for (class loop *Loop : loops_list(Function, LI_ONLY_INNERMOST))
      decide(Function, *Loop);
    return 0;
  }

private:
  void decide(function *Function, class loop &Loop);
  void fallBack(const char *Status, const char *Why);

  MLBridgeModelRunnerRef Model;
  bool HasFallenBack = false;
};

} // namespace

static int numInstructions(const class loop &Loop) {
  int Count = 0;
  basic_block *Blocks = get_loop_body(&Loop);
  for (unsigned I = 0; I < Loop.num_nodes; ++I)
    for (auto It = gsi_start_nondebug_bb(Blocks[I]); !gsi_end_p(It);
         gsi_next_nondebug(&It))
      ++Count;
  XDELETEVEC(Blocks);
  return Count;
}

void UnrollPass::decide(function *Function, class loop &Loop) {
  // What `#pragma GCC unroll` says is the user's decision. A model that is not
  // there is not waited for again.
  if (HasFallenBack || Loop.unroll != 0)
    return;
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model);
  mlbridgeSetInt32(Features, "instructions", numInstructions(Loop));
  mlbridgeSetInt32(Features, "blocks", static_cast<int32_t>(Loop.num_nodes));
  mlbridgeSetInt32(Features, "depth", static_cast<int32_t>(loop_depth(&Loop)));
  // -1 where gcc does not know.
  mlbridgeSetInt64(Features, "iterations",
                   estimated_loop_iterations_int(&Loop));
  int32_t Times = 0;
  MLBridgeStatus Status = mlbridgeEvaluateInt32(Model, &Times);
  if (Status == MLBridgeStatusDeferred)
    return;
  if (Status != MLBridgeStatusSuccess)
    return fallBack(mlbridgeGetStatusName(Status),
                    mlbridgeGetLastErrorMessage());
  if (Times < 0 || Times > MostTimes)
    return fallBack("out of range", "a loop is unrolled 0 to 64 times");
  if (Times == 0) // gcc decides.
    return;
  Loop.unroll = static_cast<unsigned short>(Times);
  Function->has_unroll = true;
}

/// Says once that gcc decides.
void UnrollPass::fallBack(const char *Status, const char *Why) {
  if (!HasFallenBack)
    inform(UNKNOWN_LOCATION, "unroll: %s: %s; gcc decides", Status, Why);
  HasFallenBack = true;
}

static void dispose(void *, void *Model) {
  auto *Runner = static_cast<MLBridgeModelRunnerRef>(Model);
  // After this, nobody could be told that record: has lost its log.
  if (mlbridgeFlush(Runner) != MLBridgeStatusSuccess)
    warning_at(UNKNOWN_LOCATION, 0, "unroll: %s",
               mlbridgeGetLastErrorMessage());
  mlbridgeDisposeModelRunner(Runner);
}

int plugin_init(plugin_name_args *Info, plugin_gcc_version *Version) {
  if (!plugin_default_version_check(Version, &gcc_version)) {
    error("unroll: built for another gcc than %s", Version->basever);
    return 1;
  }
  const char *Spec = getenv("UNROLL_MODEL");
  for (int I = 0; I < Info->argc; ++I)
    if (strcmp(Info->argv[I].key, "model") == 0)
      Spec = Info->argv[I].value;
  MLBridgeModelRunnerRef Model = nullptr;
  if (mlbridgeCreateModelRunner(Spec ? Spec : "none", &Model) !=
      MLBridgeStatusSuccess) {
    error("unroll: %s", mlbridgeGetLastErrorMessage());
    return 1;
  }
  // gcc's passes live as long as gcc.
  register_pass_info Where = {new UnrollPass(g, Model), "loopinit", 1,
                              PASS_POS_INSERT_AFTER};
  register_callback(Info->base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr,
                    &Where);
  register_callback(Info->base_name, PLUGIN_FINISH, dispose, Model);
  return 0;
}
