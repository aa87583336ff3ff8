# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates a model on the held-out kernels.

The model decides in the stock mlir-opt. Its choice is measured together with the
untiled kernel, the best measured choice (brute force), and the best fixed choice for
the training kernels of the same kind and number of loops.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean

import numpy as np

from mlbridge_optimizations.show import quiet

from .kernels import (
    HELD_OUT_KINDS,
    HELD_OUT_SIZES,
    Kernel,
)
from .measure import apply_choices, measure, tile
from .table import Entry

UNTILED, BEST, FIXED, MODEL = range(4)
"""The variants of a kernel."""


@dataclass(frozen=True, order=True)
class Recipe:
    """A choice that does not depend on the sizes of a kernel.

    Attributes:
        tile: the tile size of all loops with more iterations than this, or 0 for no
            tiles.
        innermost: whether the innermost loop is tiled, too.
        order: the order of the loops.
        unroll: the unroll factor.
    """

    tile: int
    innermost: bool
    order: tuple[int, ...]
    unroll: int


@dataclass(frozen=True)
class Result:
    """A held-out kernel's speeds relative to the untiled kernel.

    Attributes:
        is_new_kind: whether no training kernel has the kernel's kind.
        differences: the number of elements in which the variants' results differ from
            the untiled kernel's.
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
    """Returns the index of the kernel's choice that follows a recipe.

    If this choice is not legal, drops the unrolling, or the tiles, or both.
    """
    loops = len(entry.choices[0]) // 2
    can_tile = np.any(np.array(entry.choices)[:, :loops] > 0, axis=0)
    tiles = [
        recipe.tile * (trips > recipe.tile and bool(legal))
        for trips, legal in zip(Kernel.trips_of(entry.kernel), can_tile, strict=True)
    ]
    if not recipe.innermost:
        tiles[recipe.order[-1]] = 0
    tries = ((tiles, recipe.unroll), (tiles, 1), ([0] * loops, recipe.unroll))
    for sizes, unroll in (*tries, ([0] * loops, 1)):
        row = [*sizes, *recipe.order, unroll]
        if row in entry.choices:
            return entry.choices.index(row)
    return 0


def best_fixed(entries: Sequence[Entry]) -> Recipe:
    """Returns the recipe with the lowest mean log(time).

    The nests of all entries must have the same number of loops.
    """
    rows = [row for entry in entries for row in entry.choices]
    loops = len(rows[0]) // 2
    recipes = {
        Recipe(tile, innermost, order, unroll)
        for tile in {tile for row in rows for tile in row[:loops]}
        for innermost in (False, True)
        for order in {tuple(row[loops:-1]) for row in rows}
        for unroll in {row[-1] for row in rows}
    }

    def cost(recipe: Recipe) -> tuple[float, Recipe]:
        times = (entry.ratios[number_of(recipe, entry)] for entry in entries)
        return fmean(map(math.log, times)), recipe

    return min(recipes, key=cost)


def fixed_choices(training: Iterable[Entry]) -> dict[tuple[str, int], Recipe]:
    """Returns the best recipe for each kind and number of loops.

    The kind "" stands for all kinds. Only completely measured kernels are used.
    """
    groups = defaultdict(list)
    for entry in (one for one in training if one.is_complete):
        for kind in (entry.kind, ""):
            groups[kind, len(entry.choices[0]) // 2].append(entry)
    return {group: best_fixed(entries) for group, entries in groups.items()}


def compare(
    kernel: Kernel,
    entry: Entry,
    fixed: Mapping[tuple[str, int], Recipe],
    plugin: Path,
    spec: str,
    rounds: int,
) -> Result:
    """Measures the variants of a kernel alternately."""
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
    return Result(
        kernel.name,
        kernel.pattern.kind,
        is_new,
        nanoseconds=float(np.median(found.nanoseconds[:, UNTILED])),
        best=best,
        fixed=by_fixed,
        model=by_model,
        differences=int(found.differences.sum()),
    )


def compare_all(
    entries: Sequence[Entry],
    fixed: Mapping[tuple[str, int], Recipe],
    plugin: Path,
    spec: str,
    *,
    rounds: int,
    advance: Callable[[Result], None] = quiet,
) -> list[Result]:
    """Evaluates a model on all measured held-out kernels."""
    by_name = {entry.kernel: entry for entry in entries if entry.ratios}
    found = []
    for kernel in (*HELD_OUT_SIZES, *HELD_OUT_KINDS):
        if kernel.name in by_name:
            entry = by_name[kernel.name]
            found.append(compare(kernel, entry, fixed, plugin, spec, rounds))
            advance(found[-1])
    return found


def mean_speeds(results: Sequence[Result]) -> tuple[float, float, float]:
    """Returns geometric mean speeds of the model's choices.

    They are relative to the untiled kernel, the best choice and the best fixed choice.
    """
    return (
        geometric_mean(one.model for one in results),
        geometric_mean(one.model / one.best for one in results),
        geometric_mean(one.model / one.fixed for one in results),
    )
