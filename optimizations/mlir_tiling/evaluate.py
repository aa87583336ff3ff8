# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges a model on the held-out kernels.

The model decides in the stock mlir-opt. Its result is measured beside the untiled
kernel, the best choice of the brute force, and the best fixed choice of the training
kernels of the same kind and number of loops.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from mlbridge_optimizations.mlir_tiling.kernels import (
    HELD_OUT_KINDS,
    HELD_OUT_SIZES,
    Kernel,
)
from mlbridge_optimizations.mlir_tiling.programs import apply_choices, measure, tile
from mlbridge_optimizations.mlir_tiling.table import Entry
from mlbridge_optimizations.show import quiet

UNTILED, BEST, FIXED, MODEL = range(4)
"""The variants of a kernel."""

Recipe = tuple[int, ...]
"""Tile sizes, order and unroll factor, as in `choices`."""


@dataclass(frozen=True)
class Judged:
    """A held-out kernel's speeds relative to the untiled kernel.

    Attributes:
        is_new_kind: whether no training kernel is of the kernel's kind.
        differences: elements in which results differ from the untiled kernel's.
    """

    kernel: str
    kind: str
    is_new_kind: bool
    nanoseconds: float
    best: float
    fixed: float
    model: float
    differences: int


def number_of(recipe: Recipe, entry: Entry) -> int:
    """Returns the choice of a kernel that a recipe means, or 0 if it is not legal.

    A tile that is not smaller than its loop is none.
    """
    loops = len(entry.choices[0]) // 2
    trips = Kernel.trips_of(entry.kernel)
    tiles = [
        0 if tile >= trip else tile
        for tile, trip in zip(recipe[:loops], trips, strict=True)
    ]
    row = [*tiles, *recipe[loops:]]
    return entry.choices.index(row) if row in entry.choices else 0


def best_fixed(entries: Sequence[Entry]) -> Recipe:
    """Returns the recipe with the lowest mean log(time). All nests are equally deep."""
    recipes = {tuple(row) for entry in entries for row in entry.choices}

    def cost(recipe: Recipe) -> tuple[float, Recipe]:
        times = (entry.ratios[number_of(recipe, entry)] for entry in entries)
        return fmean(map(math.log, times)), recipe

    return min(recipes, key=cost)


def fixed_choices(training: Iterable[Entry]) -> dict[tuple[str, int], Recipe]:
    """Returns the best recipe for each kind and number of loops.

    The kind "" stands for all kinds. Only completely measured kernels count.
    """
    groups = defaultdict(list)
    for entry in (one for one in training if one.is_complete):
        for kind in (entry.kind, ""):
            groups[kind, len(entry.choices[0]) // 2].append(entry)
    return {group: best_fixed(entries) for group, entries in groups.items()}


def judge(
    kernel: Kernel,
    entry: Entry,
    fixed: Mapping[tuple[str, int], Recipe],
    plugin: Path,
    spec: str,
    rounds: int,
) -> Judged:
    """Measures the variants of a kernel in turns."""
    loops = len(kernel.loops)
    is_new = kernel in HELD_OUT_KINDS
    recipe = fixed.get(("" if is_new else kernel.pattern.kind, loops))
    numbers = [
        0,
        int(np.argmin(entry.ratios)),
        number_of(recipe, entry) if recipe else 0,
    ]
    rows = [np.array(entry.choices[number], np.int64) for number in numbers]
    functions = apply_choices(plugin, kernel, rows)
    functions += tile(plugin, kernel.function(f"v{MODEL}"), spec)
    found = measure(kernel, functions, MODEL + 1, rounds=rounds)
    best, by_fixed, by_model = (
        1 / found.ratio(variant) for variant in (BEST, FIXED, MODEL)
    )
    return Judged(
        kernel.name,
        kernel.pattern.kind,
        is_new,
        nanoseconds=float(np.median(found.nanoseconds[:, UNTILED])),
        best=best,
        fixed=by_fixed,
        model=by_model,
        differences=int(found.differences.sum()),
    )


def judge_all(
    entries: Sequence[Entry],
    fixed: Mapping[tuple[str, int], Recipe],
    plugin: Path,
    spec: str,
    *,
    rounds: int,
    advance: Callable[[Judged], None] = quiet,
) -> list[Judged]:
    """Judges a model on all measured held-out kernels."""
    by_name = {entry.kernel: entry for entry in entries if entry.ratios}
    found = []
    for kernel in (*HELD_OUT_SIZES, *HELD_OUT_KINDS):
        if kernel.name in by_name:
            entry = by_name[kernel.name]
            found.append(judge(kernel, entry, fixed, plugin, spec, rounds))
            advance(found[-1])
    return found


def mean_speeds(judged: Sequence[Judged]) -> tuple[float, float, float]:
    """Returns geometric means: relative to untiled, to the best, and to the fixed."""

    def mean(speeds: Iterable[float]) -> float:
        return math.exp(fmean(map(math.log, speeds)))

    return (
        mean(one.model for one in judged),
        mean(one.model / one.best for one in judged),
        mean(one.model / one.fixed for one in judged),
    )
