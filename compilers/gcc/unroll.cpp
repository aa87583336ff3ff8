//===- unroll.cpp - Lets a model choose gcc's unroll factors --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A plug-in for gcc that uses the C API: a model chooses how often each
/// innermost loop is unrolled. Run `.venv/bin/python compilers/gcc/unroll.py`,
/// then
///
///     gcc -O2 -fplugin=build/release/compilers/gcc/unroll.so
///         -fplugin-arg-unroll-model=pipe:/tmp/unroll -c x.c
///
/// gcc allows only one `=` in an argument. If a spec contains `=`, pass it in
/// the environment variable UNROLL_MODEL instead. Each compile waits 5 s for
/// the model unless the spec has the option `connect`. If the model fails, gcc
/// decides, and the plug-in prints one note for each file.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
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

// gcc refuses plug-ins without this symbol.
int plugin_is_GPL_compatible;

namespace {

/// The maximum unroll factor. A larger reply is treated as an error of the
/// model.
constexpr int MostTimes = 64;

/// The time for which each compile waits for the model. It is short, because a
/// build compiles many files.
constexpr int64_t ConnectTimeout = 5'000'000'000; // ns

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
  // Respect `#pragma GCC unroll`, because it is the user's decision. After a
  // failure, send no more requests, so that the compile does not wait again.
  if (HasFallenBack || Loop.unroll != 0)
    return;
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model);
  mlbridgeSetInt32(Features, "instructions", numInstructions(Loop));
  mlbridgeSetInt32(Features, "blocks", static_cast<int32_t>(Loop.num_nodes));
  mlbridgeSetInt32(Features, "depth", static_cast<int32_t>(loop_depth(&Loop)));
  // The estimate is -1 if gcc has none.
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
    return fallBack("out of range", "expected an unroll factor from 0 to 64");
  if (Times == 0) // The model leaves the loop to gcc.
    return;
  Loop.unroll = static_cast<unsigned short>(Times);
  Function->has_unroll = true;
}

/// Reports the first failure and makes gcc decide from then on. The report is a
/// note, because -Werror does not turn notes into errors.
void UnrollPass::fallBack(const char *Status, const char *Why) {
  if (!HasFallenBack)
    inform(UNKNOWN_LOCATION, "unroll: %s: %s; gcc decides", Status, Why);
  HasFallenBack = true;
}

static void dispose(void *, void *Model) {
  auto *Runner = static_cast<MLBridgeModelRunnerRef>(Model);
  // Flush first, since mlbridgeFlush() returns an error if the log of a
  // `record:` runner cannot be written. mlbridgeDisposeModelRunner() cannot
  // return one.
  if (mlbridgeFlush(Runner) != MLBridgeStatusSuccess)
    warning_at(UNKNOWN_LOCATION, 0, "unroll: %s",
               mlbridgeGetLastErrorMessage());
  mlbridgeDisposeModelRunner(Runner);
}

int plugin_init(plugin_name_args *Info, plugin_gcc_version *Version) {
  if (!plugin_default_version_check(Version, &gcc_version)) {
    error("unroll: built for gcc %s, found gcc %s", gcc_version.basever,
          Version->basever);
    return 1;
  }
  const char *Spec = getenv("UNROLL_MODEL");
  for (int I = 0; I < Info->argc; ++I) {
    const plugin_argument &Argument = Info->argv[I];
    if (strcmp(Argument.key, "model") != 0 || !Argument.value) {
      error("unroll: expected the argument model=SPEC, found %qs",
            Argument.key);
      return 1;
    }
    Spec = Argument.value;
  }
  MLBridgeRunnerFactoryRef Factory = nullptr;
  MLBridgeModelRunnerRef Model = nullptr;
  bool IsMade =
      mlbridgeCreateRunnerFactory(&Factory) == MLBridgeStatusSuccess &&
      mlbridgeSetConnectTimeout(Factory, ConnectTimeout) ==
          MLBridgeStatusSuccess &&
      mlbridgeCreateModelRunnerWithFactory(Factory, Spec ? Spec : "none",
                                           &Model) == MLBridgeStatusSuccess;
  mlbridgeDisposeRunnerFactory(Factory);
  if (!IsMade) {
    error("unroll: %s", mlbridgeGetLastErrorMessage());
    return 1;
  }
  // The pass is never deleted, because gcc keeps its passes until it exits.
  register_pass_info Where = {new UnrollPass(g, Model), "loopinit", 1,
                              PASS_POS_INSERT_AFTER};
  register_callback(Info->base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr,
                    &Where);
  register_callback(Info->base_name, PLUGIN_FINISH, dispose, Model);
  return 0;
}
