#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the data files of phase ordering from the -Oz pipeline of clang.

``.venv/bin/python derive.py FOLDER`` writes the action spaces oz.json, odg.json and
passes.json, and changes.json. It reads the pipeline that ``clang-22`` prints.
changes.json also lists passes to insert. These lists are copied from the old file.
"""

import argparse
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from mlbridge_optimizations.phase_ordering.environment.pipeline import (
    Manager,
    Tree,
    name_of,
    parse,
)

CHANGES = Path(__file__).parents[1] / "search" / "changes.json"

# The pass managers around a pass, outermost first. For example: ("function", "loop").
Level = tuple[str, ...]

# The pipeline that runs before all actions. It has the passes of -O0.
PROLOGUE = (
    "always-inline,coro-cond(coro-early,cgscc(coro-split),coro-cleanup),globaldce"
)

# A walk is an action of `odg`. It ends at a critical pass: a pass with at least this
# many neighbours. POSET-RL used 8, which gave 34 walks in LLVM 10. In LLVM 22, 8 would
# give only two critical passes, and 218 walks.
CRITICAL_DEGREE = 4

# Passes that do not change code.
_NO_CHANGE = {
    "annotation-remarks", "cg-profile", "declare-to-assign", "ee-instrument",
    "invalidate", "memprof-remove-attributes", "recompute-globalsaa", "require",
    "transform-warning", "verify",
}  # fmt: skip
# Passes of the prologue, which would have no effect later.
_IN_PROLOGUE = {
    "always-inline", "coro-annotation-elide", "coro-cleanup", "coro-early",
    "coro-elide", "coro-split",
}  # fmt: skip
NO_ACTION = _NO_CHANGE | _IN_PROLOGUE

# The names of the actions of `oz`, each with its first pass.
_PIECES = (
    ("attributes", "annotation2metadata"),
    ("globals", "ipsccp"),
    ("inline", "inline"),
    ("scalar", "function-attrs"),
    ("jumps", "jump-threading"),
    ("tailcalls", "aggressive-instcombine"),
    ("rotate", "loop-instsimplify"),
    ("loops", "loop-idiom"),
    ("gvn", "mldst-motion"),
    ("dead-stores", "jump-threading"),
    ("hoist", "move-auto-init"),
    ("dead-arguments", "deadargelim"),
    ("vectorize", "float2int"),
    ("unroll", "simplifycfg"),
    ("late", "alignment-from-assumptions"),
)


@dataclass(frozen=True)
class Pass:
    """One pass of a pipeline."""

    name: str
    text: str  # The name with parameters.
    level: Level


def flatten(tree: Tree, level: Level = ()) -> Iterator[Pass]:
    """Yields the passes of a pipeline in the order in which they run."""
    for node in tree:
        if isinstance(node, Manager):
            name = name_of(node.text)
            inner = (*level, name)
            if name == "devirt":
                inner = level  # This manager only repeats the passes inside.
            elif name == "function":
                inner = ("function",)  # Ignore cgscc, which makes no difference here.
            yield from flatten(node.inside, inner)
        else:
            yield Pass(name_of(node), node, level)


def render(passes: Iterable[Pass], depth: int = 0) -> str:
    """Returns a pipeline of passes. Adjacent passes share their pass managers."""
    parts = []
    for manager, group in groupby(passes, lambda p: p.level[depth : depth + 1]):
        if manager:
            parts.append(f"{manager[0]}({render(group, depth + 1)})")
        else:
            parts += [p.text for p in group]
    return ",".join(parts)


def action(name: str, passes: list[Pass]) -> dict[str, str]:
    """Makes an action from passes."""
    # Add the analyses that the inliner and function-attrs need.
    needs = {p.name for p in passes} & {"inline", "function-attrs"}
    before = "require<globals-aa>,require<profile-summary>," if needs else ""
    return {"name": name, "pipeline": before + render(passes)}


def pieces(passes: list[Pass]) -> list[dict[str, str]]:
    """Makes the actions of `oz`, which are consecutive pieces of the pipeline."""
    cuts = [-1]
    for _, first in _PIECES:
        behind = range(cuts[-1] + 1, len(passes))
        cuts.append(next(i for i in behind if passes[i].name == first))
    bounds = pairwise([*cuts[1:], len(passes)])
    names = (name for name, _ in _PIECES)
    return [action(next(names), passes[start:end]) for start, end in bounds]


def walks(passes: list[Pass]) -> list[dict[str, str]]:
    """Makes the actions of `odg`: walks to critical passes along the pipeline."""
    first: dict[tuple[str, str], Pass] = {}
    after: dict[str, list[str]] = {}
    neighbours: dict[str, set[str]] = {}
    for a, b in pairwise(passes):
        if first.setdefault((a.name, b.name), b) is b:
            after.setdefault(a.name, []).append(b.name)
        neighbours.setdefault(a.name, set()).add(b.name)
        neighbours.setdefault(b.name, set()).add(a.name)
    critical = [n for n, near in neighbours.items() if len(near) >= CRITICAL_DEGREE]
    start = {p.name: p for p in reversed(passes)}
    found = []

    def walk(path: list[Pass]) -> None:
        following = after.get(path[-1].name, [])
        ends = {*critical, *(p.name for p in path)}
        onwards = [name for name in following if name not in ends]
        if len(path) > 1 and (len(onwards) < len(following) or not onwards):
            found.append(path)
        for name in onwards:
            walk([*path, first[path[-1].name, name]])

    # Begin with the walk from the first pass to the first critical pass.
    walk([passes[0]])
    for name in critical:
        if all(n in critical for n in after.get(name, [])):
            found.append([start[name]])
        walk([start[name]])
    unique = {render(path): path for path in found}
    return [
        action("..".join(dict.fromkeys((path[0].name, path[-1].name))), path)
        for path in unique.values()
    ]


def singles(passes: list[Pass]) -> list[dict[str, str]]:
    """Makes the actions of `passes`, which are single passes with parameters."""
    unique = {render([p]): p for p in passes}
    names: Counter[str] = Counter()
    actions = []
    for p in unique.values():
        names[p.name] += 1
        suffix = f".{names[p.name]}" if names[p.name] > 1 else ""
        actions.append(action(p.name + suffix, [p]))
    return actions


def spaces(pipeline: str, version: str) -> dict[str, object]:
    """Returns a dict from the name of each action space to its contents."""
    passes = [p for p in flatten(parse(pipeline)) if p.name not in NO_ACTION]
    descriptions = {
        "oz": (
            f"The -Oz pipeline of clang {version}, cut in {len(_PIECES)} pieces: all of"
            " them in their order are nearly that pipeline",
            pieces(passes),
        ),
        "odg": (
            f"Walks over the dependence graph of clang {version}'s -Oz, whose nodes are"
            " its passes and whose edges lead from each to those that follow it:"
            f" from a pass with at least {CRITICAL_DEGREE} neighbours to the next such",
            walks(passes),
        ),
        "passes": (
            f"The single passes of clang {version}'s -Oz, each with its parameters",
            singles(passes),
        ),
    }
    return {
        name: {"name": name, "description": text, "prologue": PROLOGUE, "actions": made}
        for name, (text, made) in descriptions.items()
    }


def changes(pipeline: str, version: str) -> dict[str, object]:
    """Returns the contents of changes.json for a pipeline."""
    found: dict[str, object] = json.loads(CHANGES.read_text())
    about = re.sub(r"clang [\d.]+", f"clang {version}", str(found["description"]))
    made = {"prologue": PROLOGUE, "pipeline": pipeline, "kept": sorted(NO_ACTION)}
    return {**found, "description": about, **made}


def pipeline_of(clang: str) -> tuple[str, str]:
    """Returns the -Oz pipeline and the version of a clang."""

    def run(*arguments: str) -> str:
        return subprocess.run(
            [clang, *arguments], input="", capture_output=True, text=True, check=True
        ).stdout

    compile_ = ("-Oz", "-xc", "-", "-c", "-o", "/dev/null")
    printed = run(*compile_, "-mllvm", "-print-pipeline-passes")
    return printed.strip(), run("-dumpversion").strip()


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clang", default="clang-22")
    arguments = parser.parse_args()
    derived = pipeline_of(arguments.clang)
    for name, data in {**spaces(*derived), "changes": changes(*derived)}.items():
        text = json.dumps(data, indent=2) + "\n"
        (arguments.folder / f"{name}.json").write_text(text)


if __name__ == "__main__":
    main()
