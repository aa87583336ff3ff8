//===- Gates.cpp - Lets a model skip optional passes ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model decides which optional passes gcc skips for each function. It cannot
/// run a pass that gcc would skip.
///
//===----------------------------------------------------------------------===//

#include <unordered_map>

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <context.h>
#include <dominance.h>
#include <tree.h>

#include <gimple.h>

#include <stringpool.h>

#include <attribs.h>
#include <cgraph.h>
#include <tree-pass.h>

#include "Decisions.h"

/// The optional passes. The feature `pass` is an index in this list. A pass is
/// not in the list if gcc needs it for correct code. For example, gcc fails
/// without "bbro", without "vect" after "ifcvt", and without "isel" after a
/// vectorizer.
static constexpr const char *OptionalPasses[] = {"ccp",
                                                 "forwprop",
                                                 "ethread",
                                                 "esra",
                                                 "fre",
                                                 "evrp",
                                                 "mergephi",
                                                 "dse",
                                                 "cddce",
                                                 "phiopt",
                                                 "tailr",
                                                 "iftoswitch",
                                                 "switchconv",
                                                 "fnsplit",
                                                 "thread",
                                                 "vrp",
                                                 "dce",
                                                 "stdarg",
                                                 "cdce",
                                                 "cselim",
                                                 "copyprop",
                                                 "ifcombine",
                                                 "retslot",
                                                 "sra",
                                                 "dom",
                                                 "threadfull",
                                                 "reassoc",
                                                 "strlen",
                                                 "pre",
                                                 "sink",
                                                 "ch",
                                                 "lim",
                                                 "unswitch",
                                                 "sccp",
                                                 "ldist",
                                                 "linterchange",
                                                 "ivcanon",
                                                 "ifcvt",
                                                 "pcom",
                                                 "cunroll",
                                                 "cunrolli",
                                                 "slp",
                                                 "slp1",
                                                 "aprefetch",
                                                 "ivopts",
                                                 "laddress",
                                                 "lsplit",
                                                 "store-merging",
                                                 "tailc",
                                                 "split-paths",
                                                 "tracer",
                                                 "uncprop",
                                                 "bswap",
                                                 "widening_mul",
                                                 "backprop",
                                                 "phiprop",
                                                 "isolate-paths",
                                                 "loop2_invariant",
                                                 "loop2_unroll",
                                                 "loop2_doloop",
                                                 "subreg1",
                                                 "cse1",
                                                 "fwprop1",
                                                 "fwprop2",
                                                 "cprop",
                                                 "rtl pre",
                                                 "hoist",
                                                 "cse_local",
                                                 "ce1",
                                                 "ce2",
                                                 "ce3",
                                                 "dse1",
                                                 "dse2",
                                                 "combine",
                                                 "sched1",
                                                 "sched2",
                                                 "peephole2",
                                                 "rnreg",
                                                 "cprop_hardreg",
                                                 "ree",
                                                 "gcse2",
                                                 "auto_inc_dec",
                                                 "web",
                                                 "rtl_dce",
                                                 "compgotos",
                                                 "sms",
                                                 "einline"};

namespace {

constexpr pass_data AboutPass = {GIMPLE_PASS,
                                 "mlbridge_gates",
                                 OPTGROUP_NONE,
                                 TV_NONE,
                                 PROP_cfg | PROP_ssa,
                                 0,
                                 0,
                                 0,
                                 0};

/// Counts the blocks and statements of each function before gcc optimises it,
/// because the function may have no GIMPLE left when gcc later asks whether to
/// run a pass.
class GatesPass final : public gimple_opt_pass {
public:
  explicit GatesPass(Model &Asked)
      : gimple_opt_pass(AboutPass, g), Asked(Asked) {}

  unsigned execute(function *Function) final {
    Known[DECL_UID(Function->decl)] = countFunction(Function);
    return 0;
  }

  /// True if the model does not skip \p Pass, which gcc would run.
  bool shouldRun(const opt_pass &Pass);

private:
  Model &Asked;
  /// The counts of functions. The key is DECL_UID, because gcc may free
  /// declarations.
  std::unordered_map<unsigned, FunctionCounts> Known;
};

} // namespace

static int32_t indexOf(const char *Pass) {
  int32_t Index = 0;
  for (const char *Optional : OptionalPasses) {
    if (strcmp(Pass, Optional) == 0)
      return Index;
    ++Index;
  }
  return -1;
}

/// True if gcc must inline calls in \p Function, because of the attribute
/// always_inline or flatten.
static bool mustInline(tree Function) {
  if (lookup_attribute("flatten", DECL_ATTRIBUTES(Function)))
    return true;
  for (cgraph_edge *E = cgraph_node::get(Function)->callees; E;
       E = E->next_callee)
    if (DECL_DISREGARD_INLINE_LIMITS(E->callee->ultimate_alias_target()->decl))
      return true;
  return false;
}

bool GatesPass::shouldRun(const opt_pass &Pass) {
  if (!Asked.isActive())
    return true;
  int32_t Index = indexOf(Pass.name);
  auto Counts = Known.find(DECL_UID(current_function_decl));
  // gcc creates some functions later, for example by outlining. These functions
  // have no counts.
  if (Index < 0 || Counts == Known.end() ||
      (strcmp(Pass.name, "einline") == 0 && mustInline(current_function_decl)))
    return true;
  Asked.set("pass", Index)
      .set("pass_number", static_cast<int32_t>(Pass.static_pass_number));
  Counts->second.describeTo(Asked);
  bool IsOpen = Asked.ask(nameOf(current_function_decl), 1, 1) != 0;
  Asked.log(IsOpen);
  return IsOpen;
}

/// True if \p Pass relies on the dominators that earlier passes computed. All
/// other optional passes compute the dominators that they need.
static bool needsDominators(const opt_pass &Pass) {
  return strcmp(Pass.name, "tailr") == 0 || strcmp(Pass.name, "tailc") == 0;
}

/// \p Gate is a bool, although gcc's documentation calls it an int.
static void overrideGate(void *Gate, void *Gates) {
  bool &IsOpen = *static_cast<bool *>(Gate);
  const opt_pass &Pass = *current_pass;
  if (!IsOpen || !current_function_decl ||
      (Pass.type != GIMPLE_PASS && Pass.type != RTL_PASS))
    return;
  IsOpen = static_cast<GatesPass *>(Gates)->shouldRun(Pass);
  // The model may have skipped the passes that computed the dominators. If the
  // dominators are known, this does nothing.
  if (IsOpen && needsDominators(Pass))
    calculate_dominance_info(CDI_DOMINATORS);
}

void decideGates(const char *Plugin, Model &Asked) {
  auto *Pass = new GatesPass(Asked);
  addPass(Plugin, Pass, "ssa", PASS_POS_INSERT_AFTER);
  register_callback(Plugin, PLUGIN_OVERRIDE_GATE, overrideGate, Pass);
}
