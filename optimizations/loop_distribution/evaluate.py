# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates models on kernels whose families they have not seen, in five folds.

For each fold, models are trained on generated kernels and on the kernels of the other
folds. Then all variants of a kernel, including stock clang's, are measured alternately.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlbridge.errors import Error
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.evaluation.statistics import mean_interval, median_interval
from mlbridge_optimizations.show import Show, quiet

from .kernels import Kernel
from .measure import Times, measure
from .table import (
    REFERENCES,
    Entry,
    flags_of,
)

SLOWER = 1.02
"""A kernel counts as slower if its whole interval is above this ratio."""
LEAST = 0.98
"""Brute force makes a choice only if the choice's ratio in the table is lower."""

Models = Mapping[str, Path]
"""The model files of a fold, by decision."""


@dataclass(frozen=True)
class Ratio:
    """A time relative to stock clang: the median, and the middle 95 % of a bootstrap.

    Attributes:
        same: whether the machine code equals stock clang's.
    """

    median: float
    low: float
    high: float
    same: bool = False


@dataclass(frozen=True)
class Result:
    """A kernel's times.

    Attributes:
        ratios: the results by row.
        error: why the kernel could not be measured, or an empty string.
    """

    kernel: str
    level: str
    ratios: dict[str, Ratio] = field(default_factory=dict)
    error: str = ""


def ratio_of(values: Times, *, same: bool) -> Ratio:
    """Returns the median of ratios, and its interval."""
    low, high = median_interval(values, 1000)
    return Ratio(float(np.median(values)), low, high, same)


def best_flags(plugin: Path, entry: Entry, decision: str) -> list[str]:
    """Returns the flags of the best choice in the table, if any saves time."""
    best, flags = LEAST, list[str]()
    for loop in entry.loops:
        index = int(np.argmin(loop.ratios))
        if loop.decision == decision and loop.ratios[index] < best:
            best = loop.ratios[index]
            chosen = (decision, loop.number, loop.features, loop.options[index])
            flags = flags_of(plugin, *chosen)
    return flags


def best_factors(entries: Iterable[Entry]) -> int:
    """Returns the factors that are best on average if all loops get the same ones.

    Loops for which these factors are illegal keep LLVM's choice.
    """
    sums: dict[int, float] = {}
    for entry in entries:
        for loop in entry.loops:
            if loop.decision == "factors":
                for option, ratio in zip(loop.options, loop.ratios, strict=True):
                    sums[option] = sums.get(option, 0.0) + math.log(ratio)
    return min(sums, key=lambda option: sums[option], default=0)


def rows_of(
    plugin: Path, models: Models, entry: Entry | None, factors: int
) -> dict[str, list[str]]:
    """Returns the flags of each row for one kernel.

    Brute force reads its choices from `entry`, the kernel's entry in the table.
    `factors` is the result of `best_factors`.
    """
    distribution = f"loop-distribution=onnx:{models['distribution']}"
    chosen = f"loop-factors=onnx:{models['factors']}"
    rows = {
        **REFERENCES,
        "random": plugin_flags(plugin, "loop-seed=1"),
        "rule": plugin_flags(plugin, f"loop-distribution=onnx:{models['rule']}"),
        "same factors": plugin_flags(plugin, f"loop-choice={factors}"),
        "distribution": plugin_flags(plugin, distribution),
        "factors": plugin_flags(plugin, chosen),
        "both": plugin_flags(plugin, distribution, chosen),
    }
    if entry is not None:
        for decision in ("distribution", "factors"):
            rows[f"best {decision}"] = best_flags(plugin, entry, decision)
    return rows


def compare(
    kernel: Kernel,
    level: str,
    rows: Mapping[str, Sequence[str]],
    *,
    rounds: int = 31,
    jobs: int = 1,
) -> Result:
    """Measures all rows of a kernel."""
    try:
        found = measure(kernel, level, rows, rounds=rounds, jobs=jobs)
    except Error as error:
        return Result(kernel.name, level, error=str(error))
    ratios = {
        row: ratio_of(found.ratios(row), same=row in found.same)
        for row in found.names[1:]
    }
    return Result(kernel.name, level, ratios)


@dataclass(frozen=True)
class Summary:
    """The results of one row for all kernels of a suite.

    Attributes:
        mean: the geometric mean of the ratios. A kernel with stock clang's code has the
            ratio 1.
        interval: the middle 95 % of a bootstrap over the kernels.
        changed: the number of kernels whose code differs from stock clang's.
        faster: the number of kernels whose interval is below 1 / SLOWER.
        slower: the kernels whose interval is above SLOWER.
    """

    mean: float
    interval: tuple[float, float]
    changed: int
    faster: int
    slower: tuple[str, ...]


def summarise(results: Iterable[Result], row: str) -> Summary:
    """Summarises a row of kernels that were measured."""
    given = [(one.kernel, one.ratios[row]) for one in results if row in one.ratios]
    logs = [0.0 if ratio.same else math.log(ratio.median) for _, ratio in given]
    low, high = mean_interval(logs)
    changed = [(name, ratio) for name, ratio in given if not ratio.same]
    return Summary(
        math.exp(sum(logs) / len(logs)),
        (math.exp(low), math.exp(high)),
        len(changed),
        sum(ratio.high < 1 / SLOWER for _, ratio in changed),
        tuple(name for name, ratio in changed if ratio.low > SLOWER),
    )


def repeat(
    kernels: Sequence[Kernel],
    levels: Sequence[str],
    rows: Callable[[Kernel, str], Mapping[str, Sequence[str]]],
    *,
    runs: int = 2,
    rounds: int = 31,
    jobs: int = 1,
    show: Show = quiet,
) -> list[list[Result]]:
    """Measures all kernels several times. Returns a list for each run."""
    found: list[list[Result]] = []
    total = runs * len(levels) * len(kernels)
    for _ in range(runs):
        run: list[Result] = []
        found.append(run)
        for level in levels:
            for kernel in kernels:
                variants = rows(kernel, level)
                run.append(compare(kernel, level, variants, rounds=rounds, jobs=jobs))
                show(sum(map(len, found)), total)
    return found
