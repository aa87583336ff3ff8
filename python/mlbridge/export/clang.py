# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options with which the LLVM plug-in's inliner uses an exported model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.export.features import FeatureSpec
from mlbridge.files import spec_of

VERSION = 22
"""The version of LLVM whose inliner sends the features in this file."""

DECISION = "inlining_decision"
"""The output of an inliner."""

ALWAYS = frozenset(
    {
        "sroa_savings",
        "sroa_losses",
        "load_elimination",
        "call_penalty",
        "call_argument_setup",
        "load_relative_intrinsic",
        "lowered_call_arg_setup",
        "indirect_call_penalty",
        "jump_table_penalty",
        "case_cluster_penalty",
        "switch_default_dest_penalty",
        "switch_penalty",
        "unsimplified_common_instructions",
        "num_loops",
        "dead_blocks",
        "simplified_instructions",
        "constant_args",
        "constant_offset_ptr_args",
        "callsite_cost",
        "cold_cc_penalty",
        "last_call_to_static_bonus",
        "is_multiple_blocks",
        "nested_inlines",
        "nested_inline_cost_estimate",
        "threshold",
        "callee_basic_block_count",
        "callsite_height",
        "node_count",
        "nr_ctant_params",
        "cost_estimate",
        "edge_count",
        "caller_users",
        "caller_conditionally_executed_blocks",
        "caller_basic_block_count",
        "callee_conditionally_executed_blocks",
        "callee_users",
        "is_callee_avail_external",
        "is_caller_avail_external",
    }
)
"""The features that the inliner always sends."""

WITH = {
    "-mlbridge-inliner-include-default": frozenset({"inlining_default"}),
    "-mlbridge-inliner-include-linkage": frozenset(
        {
            "callee_is_merged",
            "callee_is_local",
            "caller_is_merged",
            "caller_is_local",
            "callee_uses",
            "caller_uses",
            "callee_other_uses",
            "callee_calls_in_caller",
            "callee_is_discardable",
            "callee_instructions",
            "caller_instructions",
            "argument_count",
            "returns_value",
            "is_invoke",
            "callee_is_nounwind",
            "callee_files",
        }
    ),
    "-ir2vec-vocab-path=FILE": frozenset({"callee_embedding", "caller_embedding"}),
}
"""Maps options to the features that the inliner sends with them."""


@dataclass(frozen=True)
class Use:
    """How clang uses a model.

    Attributes:
        command: the command line.
        unknown: the features that the inliner never sends.
    """

    command: str
    unknown: tuple[str, ...]


def use(
    features: Sequence[FeatureSpec], outputs: Sequence[str], path: Path
) -> Use | None:
    """Returns how clang uses a model, or None if it is not an inliner."""
    if DECISION not in outputs:
        return None
    names = [feature.name for feature in features]
    needed = [option for option, given in WITH.items() if given.intersection(names)]
    options = [f"-mlbridge-inliner={spec_of('onnx', path)}", *needed]
    known = ALWAYS.union(*WITH.values())
    return Use(
        "clang-22 -Oz -fpass-plugin=MLBridgeLLVM.so "
        + " ".join(f"-mllvm {option}" for option in options)
        + " -c x.c",
        tuple(name for name in names if name not in known),
    )
