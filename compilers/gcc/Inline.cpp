//===- Inline.cpp - Lets a model decide what to inline --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model decides about each call before gcc's inliner does. The calls in a
/// function's callees come before the calls in the function, as in LLVM. gcc's
/// early inliner runs even before the model, unless -fno-early-inlining is
/// given. With -flto, gcc decides at link time.
///
//===----------------------------------------------------------------------===//

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <context.h>
#include <tree.h>

#include <gimple.h>

#include <cgraph.h>
#include <function.h>
#include <target.h>
#include <tree-pass.h>

#include <stringpool.h>

#include <attribs.h>

#include <alloc-pool.h>
#include <asan.h>
#include <diagnostic-core.h>
#include <ipa-utils.h>
#include <sreal.h>
#include <symbol-summary.h>
#include <trans-mem.h>
#include <tree-vrp.h>

#include <ipa-prop.h>

#include <ipa-fnsummary.h>
#include <ipa-inline.h>

#include "Decisions.h"

namespace {

/// The replies of a model.
enum InlineChoice : int { KeepCall, InlineCall, LeaveCall };

/// The maximum size of a function after inlining, in gcc's unit. The limit
/// bounds the compile time. gcc's own limit, large-function-insns, is 2700
/// instructions of 2 units each.
constexpr int MostFunctionSize = 40'000;
/// The factor by which inlining may enlarge the whole file.
constexpr int MostUnitGrowth = 4;

constexpr pass_data AboutPass = {
    IPA_PASS, "mlbridge_inline", OPTGROUP_INLINE, TV_NONE, 0, 0, 0, 0, 0};

class InlinePass final : public ipa_opt_pass_d {
public:
  explicit InlinePass(Model &Asked)
      : ipa_opt_pass_d(AboutPass, g, nullptr, nullptr, nullptr, nullptr,
                       nullptr, nullptr, 0, nullptr, nullptr),
        Asked(Asked) {}

  unsigned execute(function *) final;

private:
  struct Node {
    FunctionCounts Counts;
    int32_t Callers = 0;
  };

  std::vector<cgraph_edge *> findCalls();
  void findFlattened(cgraph_node &Root);
  void describe(cgraph_edge &Call);
  void decide(cgraph_edge &Call);

  Model &Asked;
  std::unordered_map<const cgraph_node *, Node> Nodes;
  /// The functions with the attribute flatten, and their direct and indirect
  /// callees.
  std::unordered_set<const cgraph_node *> Flattened;
  int64_t Edges = 0;
  int64_t UnitSize = 0;
  int64_t MostUnitSize = 0;
};

} // namespace

static cgraph_node &calleeOf(const cgraph_edge &Call) {
  return *Call.callee->ultimate_alias_target();
}

/// Returns the function that contains \p Call after the inlining so far.
static cgraph_node &rootOf(const cgraph_edge &Call) {
  return Call.caller->inlined_to ? *Call.caller->inlined_to : *Call.caller;
}

static bool hasSameOptions(cgraph_node &Caller, cgraph_node &Callee) {
  tree Own = DECL_STRUCT_FUNCTION(Caller.decl)
                 ? DECL_FUNCTION_PERSONALITY(Caller.decl)
                 : NULL_TREE;
  tree Other = DECL_FUNCTION_PERSONALITY(Callee.decl);
  return targetm.target_option.can_inline_p(Caller.decl, Callee.decl) &&
         opt_for_fn(Caller.decl, optimize) &&
         DECL_FUNCTION_SPECIFIC_OPTIMIZATION(Caller.decl) ==
             DECL_FUNCTION_SPECIFIC_OPTIMIZATION(Callee.decl) &&
         DECL_NO_INSTRUMENT_FUNCTION_ENTRY_EXIT(Caller.decl) ==
             DECL_NO_INSTRUMENT_FUNCTION_ENTRY_EXIT(Callee.decl) &&
         (!Own || !Other || Own == Other);
}

/// Returns the sanitizers that instrument \p Function.
static unsigned sanitizersOf(const_tree Function) {
  tree Excluded = lookup_attribute("no_sanitize", DECL_ATTRIBUTES(Function));
  if (!Excluded)
    return flag_sanitize;
  return flag_sanitize &
         ~static_cast<unsigned>(tree_to_uhwi(TREE_VALUE(Excluded)));
}

/// True if sanitizers, transactional memory and live patching allow inlining
/// \p Callee into \p Caller.
static bool hasSameInstrumentation(const cgraph_node &Caller,
                                   const cgraph_node &Callee) {
  return sanitizersOf(Caller.decl) == sanitizersOf(Callee.decl) &&
         sanitize_coverage_p(Caller.decl) == sanitize_coverage_p(Callee.decl) &&
         is_tm_pure(Caller.decl) == is_tm_pure(Callee.decl) &&
         (!Callee.externally_visible ||
          flag_live_patching != LIVE_PATCHING_INLINE_ONLY_STATIC);
}

/// True if inlining \p Call would enlarge the caller's stack frame more than
/// gcc's parameters allow. A recursive caller could then overflow the stack.
static bool isFrameTooLarge(const cgraph_edge &Call) {
  cgraph_node &Root = rootOf(Call);
  HOST_WIDE_INT Added =
      ipa_fn_summaries->get(&calleeOf(Call))->estimated_stack_size;
  HOST_WIDE_INT Own =
      ipa_size_summaries->get(Call.caller)->estimated_self_stack_size;
  HOST_WIDE_INT Most =
      MAX(Own, ipa_size_summaries->get(&Root)->estimated_self_stack_size);
  Most += Most * opt_for_fn(Root.decl, param_stack_frame_growth) / 100;
  Most = MAX(Most, ipa_fn_summaries->get(&Root)->estimated_stack_size);
  Most = MAX(Most, opt_for_fn(Root.decl, param_large_stack_frame));
  return Added != 0 && Own + Added > Most;
}

/// True if gcc's inline_call() may inline \p Call. gcc's own checks are static
/// functions of its inliner, which a plug-in cannot call.
static bool canInline(cgraph_edge &Call) {
  if (!Call.inline_failed || Call.speculative || Call.call_stmt_cannot_inline_p)
    return false;
  enum availability Available = AVAIL_NOT_AVAILABLE;
  Call.callee->function_or_virtual_thunk_symbol(&Available, Call.caller);
  cgraph_node &Callee = calleeOf(Call);
  cgraph_node &Caller = rootOf(Call);
  const ipa_fn_summary *Summary = ipa_fn_summaries->get(&Callee);
  // Exclude functions with the attribute always_inline, because gcc must inline
  // them.
  return cgraph_inline_failed_type(Call.inline_failed) != CIF_FINAL_ERROR &&
         Available > AVAIL_INTERPOSABLE && Callee.analyzed &&
         Callee.has_gimple_body_p() && !Callee.thunk && !Caller.thunk &&
         Summary && Summary->inlinable && ipa_size_summaries->get(&Callee) &&
         ipa_size_summaries->get(&Caller) && ipa_call_summaries->get(&Call) &&
         !DECL_UNINLINABLE(Callee.decl) &&
         !DECL_DISREGARD_INLINE_LIMITS(Callee.decl) &&
         !Callee.calls_comdat_local && !Call.recursive_p() &&
         &Caller != &Callee && hasSameOptions(Caller, Callee) &&
         hasSameInstrumentation(Caller, Callee) && !isFrameTooLarge(Call);
}

/// Returns the number of constant arguments of a call.
static int32_t numConstants(const cgraph_edge &Call) {
  int32_t Count = 0;
  for (unsigned I = 0;
       Call.call_stmt && I < gimple_call_num_args(Call.call_stmt); ++I)
    Count += is_gimple_min_invariant(gimple_call_arg(Call.call_stmt, I));
  return Count;
}

void InlinePass::describe(cgraph_edge &Call) {
  cgraph_node &Callee = calleeOf(Call);
  cgraph_node &Caller = rootOf(Call);
  const ipa_call_summary &About = *ipa_call_summaries->get(&Call);
  const Node &From = Nodes[&Caller];
  const Node &To = Nodes[&Callee];
  // LLVM's inliner uses the same names and types for these features.
  Asked
      .set("callee_basic_block_count",
           static_cast<int64_t>(To.Counts.BasicBlocks))
      .set("callee_conditionally_executed_blocks",
           static_cast<int64_t>(To.Counts.ConditionallyExecutedBlocks))
      .set("callee_users", static_cast<int64_t>(To.Callers))
      .set("caller_basic_block_count",
           static_cast<int64_t>(From.Counts.BasicBlocks))
      .set("caller_conditionally_executed_blocks",
           static_cast<int64_t>(From.Counts.ConditionallyExecutedBlocks))
      .set("caller_users", static_cast<int64_t>(From.Callers))
      .set("node_count", static_cast<int64_t>(Nodes.size()))
      .set("edge_count", Edges)
      .set("nr_ctant_params", static_cast<int64_t>(numConstants(Call)))
      .set("cost_estimate", static_cast<int64_t>(estimate_edge_growth(&Call)));
  // LLVM's inliner does not have these features.
  sreal Unspecialised;
  sreal Time = estimate_edge_time(&Call, &Unspecialised);
  Asked.set("callee_size", ipa_size_summaries->get(&Callee)->size)
      .set("caller_size", ipa_size_summaries->get(&Caller)->size)
      .set("callee_time", static_cast<float>(Unspecialised.to_double()))
      .set("inlined_time", static_cast<float>(Time.to_double()))
      .set("call_size", static_cast<int32_t>(About.call_stmt_size))
      .set("call_time", static_cast<int32_t>(About.call_stmt_time))
      .set("loop_depth", static_cast<int32_t>(About.loop_depth))
      .set("frequency", static_cast<float>(Call.sreal_frequency().to_double()))
      .set("callee_loop_depth", To.Counts.MaxLoopDepth)
      .set("callee_is_local", static_cast<int32_t>(Callee.local))
      .set("callee_is_inline",
           static_cast<int32_t>(DECL_DECLARED_INLINE_P(Callee.decl)));
}

void InlinePass::decide(cgraph_edge &Call) {
  // gcc inlines all calls in functions with the attribute flatten.
  if (!Asked.isActive() || Flattened.contains(Call.caller) || !canInline(Call))
    return;
  int Growth = estimate_edge_growth(&Call);
  if (ipa_size_summaries->get(&rootOf(Call))->size + Growth >
          MostFunctionSize ||
      UnitSize + Growth > MostUnitSize)
    return;
  describe(Call);
  std::string Site = std::string(nameOf(Call.caller->decl)) + "->" +
                     nameOf(calleeOf(Call).decl);
  int Choice = Asked.ask(Site.c_str(), LeaveCall, LeaveCall);
  Asked.log(Choice);
  if (Choice == KeepCall) {
    Call.call_stmt_cannot_inline_p = true;
    Call.inline_failed = CIF_LTO_MISMATCHED_DECLARATIONS;
  } else if (Choice == InlineCall) {
    UnitSize += Growth;
    cgraph_node &Root = rootOf(Call);
    inline_call(&Call, true, nullptr, nullptr, false);
    // Update the whole summary, because inline_call() may also change other
    // calls of the function.
    ipa_update_overall_fn_summary(&Root);
  }
}

/// Adds \p Root, and its direct and indirect callees, to Flattened.
void InlinePass::findFlattened(cgraph_node &Root) {
  std::vector<cgraph_node *> Left = {&Root};
  while (!Left.empty()) {
    cgraph_node *Function = Left.back();
    Left.pop_back();
    if (!Flattened.insert(Function).second)
      continue;
    for (cgraph_edge *E = Function->callees; E; E = E->next_callee)
      Left.push_back(&calleeOf(*E));
  }
}

/// Counts the functions of the file. Returns their calls. The calls in a callee
/// precede the calls in its callers.
std::vector<cgraph_edge *> InlinePass::findCalls() {
  std::vector<cgraph_node *> Order(symtab->cgraph_count);
  int Count = ipa_reverse_postorder(Order.data());
  std::vector<cgraph_edge *> Calls;
  for (int I = Count - 1; I >= 0; --I) {
    cgraph_node &Function = *Order[I];
    if (!Function.has_gimple_body_p() || !Function.analyzed)
      continue;
    Node &Own = Nodes[&Function];
    function *Body = DECL_STRUCT_FUNCTION(Function.decl);
    if (Body && Body->cfg)
      Own.Counts = countFunction(Body);
    for (cgraph_edge *E = Function.callers; E; E = E->next_caller)
      ++Own.Callers;
    if (const ipa_size_summary *Size = ipa_size_summaries->get(&Function))
      UnitSize += Size->size;
    for (cgraph_edge *E = Function.callees; E; E = E->next_callee)
      Calls.push_back(E);
    if (lookup_attribute("flatten", DECL_ATTRIBUTES(Function.decl)))
      findFlattened(Function);
  }
  return Calls;
}

/// gcc calls this function before it frees \p Call.
static void forget(cgraph_edge *Call, void *Left) {
  static_cast<std::unordered_set<cgraph_edge *> *>(Left)->erase(Call);
}

unsigned InlinePass::execute(function *) {
  // Do nothing at link time, because gcc's inliner then asserts that no call
  // has been inlined.
  if (in_lto_p)
    return 0;
  // Do nothing after an error in the program, because some functions then have
  // no summary.
  if (seen_error() || !ipa_fn_summaries || !Asked.isActive())
    return 0;
  std::vector<cgraph_edge *> Calls = findCalls();
  Edges = static_cast<int64_t>(Calls.size());
  MostUnitSize = MostUnitGrowth * UnitSize + MostFunctionSize;
  // Inlining may turn an indirect call into a direct one, and then frees calls.
  std::unordered_set<cgraph_edge *> Left(Calls.begin(), Calls.end());
  cgraph_edge_hook_list *Hook = symtab->add_edge_removal_hook(forget, &Left);
  for (cgraph_edge *Call : Calls)
    if (Left.contains(Call))
      decide(*Call);
  symtab->remove_edge_removal_hook(Hook);
  return 0;
}

void decideInlining(const char *Plugin, Model &Asked) {
  addPass(Plugin, new InlinePass(Asked), "inline", PASS_POS_INSERT_BEFORE);
}
