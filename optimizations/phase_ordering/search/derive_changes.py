# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what a search over whole pipelines may change in the -Oz of an LLVM.

``.venv/bin/python -m mlbridge_optimizations.phase_ordering.search.derive_changes FILE``
writes the pipeline that ``clang-22`` prints, and what may be put in it.
What that is, is said here: passes that LLVM or a compiler built on it runs by default,
be it at another level (argpromotion, callsite-splitting), for another target (sink,
slsr, nary-reassociate), before code is generated (loop-reduce, consthoist, mergeicmps)
or for another language (mergefunc). What is off everywhere (gvn-hoist, newgvn, lnicm,
iroutliner, hotcoldsplit, attributor) is tested less, and is not inserted.
"""

import argparse
import json
from pathlib import Path

from mlbridge_optimizations.phase_ordering.compiler.derive_actions import (
    NO_ACTION,
    PROLOGUE,
    pipeline_of,
)

_SIMPLIFYCFG = {
    "forward-switch-cond": False,
    "switch-range-to-icmp": True,
    "switch-to-arithmetic": False,
    "switch-to-lookup": False,
    "keep-loops": True,
    "hoist-common-insts": False,
    "hoist-loads-stores-with-cond-faulting": False,
    "sink-common-insts": False,
    "speculate-blocks": True,
    "simplify-cond-branch": True,
    "speculate-unpredictables": False,
}
"""As it mostly is in the pipeline, in the order in which LLVM prints it."""


def _simplifycfg(*other: str, threshold: int = 1) -> str:
    """Simplifycfg with some of its parameters the other way round."""
    flags = {name: is_on != (name in other) for name, is_on in _SIMPLIFYCFG.items()}
    told = [name if is_on else f"no-{name}" for name, is_on in flags.items()]
    return f"simplifycfg<{';'.join([f'bonus-inst-threshold={threshold}', *told])}>"


_HOIST, _SINK = "hoist-common-insts", "sink-common-insts"
_TABLES = ("forward-switch-cond", "switch-to-arithmetic", "switch-to-lookup")

VARIANTS = {
    "simplifycfg": (
        _simplifycfg(),
        _simplifycfg(threshold=0),
        _simplifycfg(_HOIST),
        _simplifycfg(_SINK),
        _simplifycfg(_HOIST, _SINK),
        _simplifycfg(_HOIST, _SINK, "switch-to-arithmetic", threshold=0),
        _simplifycfg(_HOIST, _SINK, "keep-loops", *_TABLES),
        _simplifycfg(
            *(_HOIST, _SINK, "keep-loops", "speculate-blocks"),
            *("forward-switch-cond", "switch-to-arithmetic"),
            threshold=0,
        ),
        _simplifycfg("speculate-blocks"),
        _simplifycfg("speculate-blocks", _HOIST, _SINK, threshold=0),
        _simplifycfg("keep-loops"),
        _simplifycfg("switch-to-lookup"),
    ),
    "gvn": ("gvn<>", "gvn<no-pre>", "gvn<no-load-pre>"),
    "early-cse": ("early-cse<>", "early-cse<memssa>"),
    "licm": ("licm<allowspeculation>", "licm<no-allowspeculation>"),
    "loop-rotate": (
        "loop-rotate<no-header-duplication;no-prepare-for-lto>",
        "loop-rotate<header-duplication;no-prepare-for-lto>",
    ),
}
"""Passes that there are with several sets of parameters."""

INSTCOMBINE = "instcombine<max-iterations=1;no-verify-fixpoint>"

FUNCTION = (
    INSTCOMBINE,
    "instcombine<max-iterations=3;no-verify-fixpoint>",
    *VARIANTS["simplifycfg"],
    *VARIANTS["gvn"],
    *VARIANTS["early-cse"],
    *("adce", "aggressive-instcombine", "bdce", "callsite-splitting", "consthoist"),
    *("constraint-elimination", "correlated-propagation", "div-rem-pairs", "dse"),
    *("float2int", "infer-alignment", "instsimplify", "jump-threading", "lcssa"),
    *("libcalls-shrinkwrap", "loop-distribute", "loop-load-elim", "loop-simplify"),
    *("loop-sink", "memcpyopt", "mergeicmps", "mldst-motion<no-split-footer-bb>"),
    *("nary-reassociate", "partially-inline-libcalls", "reassociate", "sccp"),
    *("separate-const-offset-from-gep", "sink", "slp-vectorizer", "slsr"),
    "speculative-execution<only-if-divergent-target>",
    *("sroa<modify-cfg>", "sroa<preserve-cfg>", "tailcallelim", "vector-combine"),
    *(f"loop-mssa({licm})" for licm in VARIANTS["licm"]),
    "loop-mssa(simple-loop-unswitch<no-nontrivial;trivial>)",
    *(f"loop({rotate})" for rotate in VARIANTS["loop-rotate"]),
    *("loop(indvars)", "loop(loop-deletion)", "loop(loop-idiom)"),
    *("loop(loop-instsimplify,loop-simplifycfg)", "loop(loop-reduce)"),
    "loop(loop-unroll-full)",
)
"""What may be put between the passes of a function."""

MODULE = (
    *("called-value-propagation", "constmerge", "deadargelim", "globaldce"),
    *("globalopt", "inferattrs", "ipsccp", "mergefunc", "rel-lookup-table-converter"),
    *("rpo-function-attrs", "require<globals-aa>", "cgscc(argpromotion)"),
    *("cgscc(function-attrs)", "require<profile-summary>,cgscc(inline)"),
    "function(sroa<modify-cfg>,early-cse<>)",
    f"function({INSTCOMBINE})",
    f"function({_simplifycfg()})",
    f"function(early-cse<memssa>,{_simplifycfg(_HOIST, _SINK)})",
    *("function(gvn<>)", "function(tailcallelim)", "function(loop(indvars))"),
    "function(loop(loop-reduce))",
)
"""What may be put between the passes of a module."""


def changes(pipeline: str, version: str) -> dict[str, object]:
    """All that `mlbridge_optimizations.phase_ordering.search.changes.Library` reads."""
    return {
        "description": f"The -Oz pipeline of clang {version}, and what a search over"
        " whole pipelines may do to it: leave out any pass but those of `kept`, have"
        " it with the parameters of another of its `variants`, put one of `function`"
        " between the passes of a function, one of `module` between those of a module",
        "prologue": PROLOGUE,
        "pipeline": pipeline,
        "kept": sorted(NO_ACTION),
        "variants": VARIANTS,
        "function": FUNCTION,
        "module": MODULE,
    }


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--clang", default="clang-22")
    arguments = parser.parse_args()
    text = json.dumps(changes(*pipeline_of(arguments.clang)), indent=2)
    arguments.file.write_text(text + "\n")


if __name__ == "__main__":
    main()
