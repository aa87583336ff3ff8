# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares models with stock gcc -O2, -O3 and fixed settings on whole programs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from mlbridge_optimizations.corpus.manifest import Corpus, Program
from mlbridge_optimizations.corpus.runs import Tester
from mlbridge_optimizations.evaluation.executions import median_ratio, paired_times

from .measure import Build, SmallTester, text_and_constants
from .search import LARGEST_TEXT

STOCK = "stock"


def _unroll(times: int) -> tuple[str, ...]:
    return "-funroll-loops", f"--param=max-unroll-times={times}"


EARLY = "--param=early-inlining-insns=14"
AUTO = "--param=max-inline-insns-auto=30"
SPEEDUP = "--param=inline-min-speedup=15"
"""Options that set the limits of inlining as -O3 does."""

FIXED: Mapping[str, tuple[str, ...]] = {
    "-O3": ("-O3",),
    "unroll 2": _unroll(2),
    "unroll 4": _unroll(4),
    "unroll 8": _unroll(8),
    "inline early": (EARLY,),
    "inline auto": (AUTO,),
    "inline for speed": (SPEEDUP,),
    "inline auto, for speed": (AUTO, SPEEDUP),
    "inline as -O3": (EARLY, AUTO, SPEEDUP),
    "inline early, unroll 4": (EARLY, *_unroll(4)),
}
"""Settings that are the same for all programs, by name."""


@dataclass(frozen=True)
class Ratio:
    """A program relative to stock gcc -O2: instructions, code size, and user time.

    The time is the median ratio of alternating pairs, or 0 if it was not measured.
    """

    program: str
    row: str
    instructions: float
    text: float
    time: float = 0.0


def model_rows(
    plugin: Path, models: Path, decisions: Sequence[str] = ("inline", "unroll")
) -> dict[str, tuple[str, ...]]:
    """Returns gcc's flags for each model alone, and for all together.

    Decisions without a model in the folder are left out.
    """
    load = f"-fplugin={plugin.resolve()}"
    files = {one: (models / f"{one}.onnx").resolve() for one in decisions}
    flags = {
        one: f"-fplugin-arg-mlbridge-{one}=onnx:{file}"
        for one, file in files.items()
        if file.is_file()
    }
    rows: dict[str, tuple[str, ...]] = {
        f"model: {one}": (load, flag) for one, flag in flags.items()
    }
    if len(flags) > 1:
        rows["model: both"] = (load, *flags.values())
    return rows


def evaluate(
    corpus: Corpus,
    programs: Iterable[Program],
    rows: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    pairs: int = 0,
) -> Iterator[Ratio]:
    """Compiles all programs, and counts the instructions that they execute.

    Stock gcc's objects that `folder` already has are reused. With `pairs`, user times
    are measured on the corpus's large inputs. Raises ModelError if a program's output
    differs from the output with stock gcc.
    """
    for program in programs:
        stock = Build(program, folder / program.name).all(keep=True)
        executable = stock.link(stock.folder / STOCK)
        tester = SmallTester(program, executable)
        base = tester.count(executable, stock.folder).instructions
        for row, flags in rows.items():
            own = Build(program, stock.folder / "row").all(flags)
            built = own.link(own.folder / "program")
            counted = tester.count(built, own.folder).instructions
            time = pair_time(corpus, program, executable, built, pairs) if pairs else 0
            size = text_and_constants(built) / text_and_constants(executable)
            yield Ratio(program.name, row, counted / base, size, time)


def pair_time(
    corpus: Corpus, program: Program, stock: Path, built: Path, pairs: int
) -> float:
    """Returns the median ratio of user times in alternating pairs, or 0."""
    with Tester(corpus, program) as tester:
        return median_ratio(paired_times(tester, stock, built, pairs))


def best_fixed(found: Iterable[Ratio], largest_text: float = LARGEST_TEXT) -> str:
    """Returns the fixed setting with the fewest instructions on average.

    Considers only settings whose mean code size, relative to stock gcc's, is at most
    `largest_text`. Returns STOCK if none of them is better.
    """
    results = list(found)
    known = {one.row for one in results} & FIXED.keys()
    fitting = [one for one in known if mean(results, one, "text") <= largest_text]
    best = min(fitting, key=lambda row: mean(results, row), default=STOCK)
    return best if best in known and mean(results, best) < 1 else STOCK


def mean(found: Iterable[Ratio], row: str, what: str = "instructions") -> float:
    """Returns the geometric mean of a row over all programs.

    Ignores programs without a measurement. Returns NaN if no program has one.
    """
    values = [
        value for one in found if one.row == row and (value := getattr(one, what))
    ]
    return geometric_mean(values) if values else math.nan
