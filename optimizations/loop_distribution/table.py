# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures all legal decisions about the loops of kernels (brute force).

Models are trained and evaluated with the table, which has the features of each loop,
and the time of each choice relative to stock clang. A choice changes one loop of a
kernel.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import Error
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.evaluation import tables
from mlbridge_optimizations.evaluation.statistics import median_interval
from mlbridge_optimizations.show import Show, quiet

from .kernels import Kernel
from .measure import loops_of, measure

# The maximum numbers of measured loops per kernel, and of measured distributions per
# loop.
MEASURED_LOOPS, MEASURED_DISTRIBUTIONS = 6, 32

AGAIN, LLVM = "again", "llvm"
REFERENCES: Mapping[str, list[str]] = {
    "stock": [],
    AGAIN: [],
    LLVM: ["-mllvm", "-enable-loop-distribute"],
}
"""Clang's flags by variant, without the plug-in. The first two are equal."""

CYCLES = {
    "distribution": ("distribution_features", 9),
    "factors": ("factor_features", 2),
}
"""The feature and its column with log(1 + estimated cycles), by decision."""


@dataclass(frozen=True)
class Choices:
    """The measured choices for one loop.

    Attributes:
        decision: ``distribution`` or ``factors``.
        number: the loop's number among the kernel's loops with this kind of decision.
        features: a model's features, by name.
        options: the rows of ``distributions``, or the indices of legal factors. The
            first option does not change the loop.
        ratios: each option's time relative to stock clang, as the median of the rounds.
        spread: half the width of the 95 % interval of each ratio.
    """

    decision: str
    number: int
    features: dict[str, Any]
    options: list[int]
    ratios: list[float]
    spread: list[float]


@dataclass(frozen=True)
class Entry:
    """A kernel's measured choices.

    Attributes:
        nanoseconds: the time of a call with stock clang.
        again: the ratio of the times of two equal variants, which shows the noise.
        llvm: the ratio of times with LLVM's ``-enable-loop-distribute``.
        declined: the reasons why the plug-in cannot change some loops.
        error: why the kernel could not be measured, or an empty string.
    """

    kernel: str
    level: str
    nanoseconds: float = 0.0
    again: float = 1.0
    llvm: float = 1.0
    loops: list[Choices] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    error: str = ""


def spread_of(ratios: NDArray[np.float64]) -> float:
    """Returns half the width of the 95 % interval of the median, by bootstrap."""
    low, high = median_interval(ratios, 200)
    return (high - low) / 2


def flags_of(
    plugin: Path, decision: str, number: int, features: Mapping[str, Any], option: int
) -> list[str]:
    """Returns clang's flags that make one choice about one loop of a kernel.

    `Choices` describes `number`, `features` and `option`.
    """
    if decision == "factors":
        chosen = f"loop-choice={option}"
    else:
        row = features["distributions"][option]
        numbers = ",".join(str(row[seed]) for seed in features["seeds"])
        chosen = f"loop-partition={numbers}"
    return plugin_flags(plugin, chosen, f"loop-number={number}")


def variants_of(
    loops: Sequence[dict[str, Any]], plugin: Path
) -> tuple[dict[str, list[str]], list[tuple[str, int, dict[str, Any], list[int]]]]:
    """Returns the variants of a kernel to measure, and the options of its loops.

    For example, the variant with option 2 for loop 0 is called ``distribution 0 2``.
    """
    variants = dict(REFERENCES)
    asked = []
    understood = [loop for loop in loops if "declined" not in loop][:MEASURED_LOOPS]
    several = [loop for loop in understood if len(loop["seeds"]) > 1]
    for number, loop in enumerate(several):
        options = list(range(min(len(loop["distributions"]), MEASURED_DISTRIBUTIONS)))
        asked.append(("distribution", number, loop, options))
    for number, loop in enumerate(understood):
        options = [index for index, legal in enumerate(loop["action_mask"]) if legal]
        asked.append(("factors", number, loop, options))
    for decision, number, loop, options in asked:
        for option in options[1:]:
            flags = flags_of(plugin, decision, number, loop, option)
            variants[f"{decision} {number} {option}"] = flags
    return variants, asked


def measure_kernel(
    kernel: Kernel, level: str, plugin: Path, *, rounds: int = 11, jobs: int = 1
) -> Entry:
    """Measures all choices about a kernel's loops."""
    try:
        loops = loops_of(kernel, level, plugin)
        variants, asked = variants_of(loops, plugin)
        found = measure(kernel, level, variants, rounds=rounds, jobs=jobs)
    except Error as error:
        return Entry(kernel.name, level, error=str(error))
    measured = []
    for decision, number, loop, options in asked:
        ratios, spread = [1.0], [0.0]
        for option in options[1:]:
            values = found.ratios(f"{decision} {number} {option}")
            ratios.append(float(np.median(values)))
            spread.append(spread_of(values))
        measured.append(Choices(decision, number, loop, options, ratios, spread))
    return Entry(
        kernel.name,
        level,
        float(np.median(found.nanoseconds[:, 0])),
        float(np.median(found.ratios(AGAIN))),
        float(np.median(found.ratios(LLVM))),
        measured,
        [loop["declined"] for loop in loops if "declined" in loop],
    )


def make_table(
    kernels: Sequence[Kernel],
    levels: Sequence[str],
    plugin: Path,
    file: Path,
    *,
    rounds: int = 11,
    jobs: int = 1,
    show: Show = quiet,
) -> list[Entry]:
    """Measures kernels at several levels. Skips kernels that the file already has.

    Returns the entries that were added to the file.
    """
    known = set()
    if file.is_file():
        known = {(entry.kernel, entry.level) for entry in read_table(file)}
    missing = [
        (kernel, level)
        for level in levels
        for kernel in kernels
        if (kernel.name, level) not in known
    ]
    done = count(1)
    return tables.extend_table(
        file,
        missing,
        lambda case: measure_kernel(*case, plugin, rounds=rounds, jobs=jobs),
        lambda entry: show(next(done), len(missing)),
    )


def correlation(entries: Iterable[Entry], decision: str) -> tuple[float, int]:
    """Returns the correlation of estimated cycles and measured times.

    Cycles and times are logarithms of ratios to the first choice of the same loop. Also
    returns the number of other choices. The correlation is NaN if all choices are
    alike.
    """
    name, column = CYCLES[decision]
    cycles, times = [np.zeros(0)], [np.zeros(0)]
    for entry in entries:
        for loop in entry.loops:
            if loop.decision == decision and len(loop.options) > 1:
                rows = np.asarray(loop.features[name], np.float64)[loop.options]
                estimated = np.log(np.expm1(rows[:, column]))
                cycles.append(estimated[1:] - estimated[0])
                times.append(np.log(loop.ratios[1:]))
    x, y = np.concatenate(cycles), np.concatenate(times)
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return math.nan, len(x)
    return float(np.corrcoef(x, y)[0, 1]), len(x)


def _entry(loops: list[dict[str, Any]], **members: Any) -> Entry:
    return Entry(loops=[Choices(**loop) for loop in loops], **members)


def read_table(file: Path) -> Iterator[Entry]:
    """Yields the entries of a file. See `tables.read_table` for errors."""
    return tables.read_table(file, _entry, "search loop-distribution-times")
