# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares models with stock gcc -O2, -O3 and fixed settings on whole programs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from mlbridge.errors import ModelError
from mlbridge_optimizations.corpus.manifest import Corpus, Program
from mlbridge_optimizations.corpus.runs import Tester
from mlbridge_optimizations.gcc_speed.programs import Build, SmallTester, text_size

STOCK = "stock"

INLINE_MORE = (
    "--param=early-inlining-insns=14",
    "--param=max-inline-insns-auto=30",
    "--param=inline-min-speedup=15",
)
"""The limits with which gcc -O3 inlines, at -O2."""

FIXED: Mapping[str, tuple[str, ...]] = {
    "-O3": ("-O3",),
    "inline more": INLINE_MORE,
    "inline most": (*INLINE_MORE, "--param=max-inline-insns-auto=60"),
    "unroll": ("-funroll-loops", "--param=max-unroll-times=4"),
}
"""Settings that are the same for all programs, by name."""


@dataclass(frozen=True)
class Ratio:
    """A program relative to stock gcc -O2: instructions, code size, and user time.

    The time is the median of alternating pairs, or 0 if it was not measured.
    """

    program: str
    row: str
    instructions: float
    text: float
    time: float = 0.0


def model_rows(
    plugin: Path, models: Path, decisions: Sequence[str] = ("inline", "unroll")
) -> dict[str, tuple[str, ...]]:
    """Returns gcc's flags for each model alone, and for all together."""
    load = f"-fplugin={plugin.resolve()}"
    flags = {
        one: f"-fplugin-arg-mlbridge-{one}=onnx:{(models / one).resolve()}.onnx"
        for one in decisions
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
    show: Callable[[Ratio], None] = lambda ratio: None,
) -> list[Ratio]:
    """Compiles and counts all programs. Stock objects in `folder` are kept.

    With `pairs`, user times are measured on the corpus's large inputs. Raises
    ModelError if a program prints something else than stock gcc's.
    """
    found = []
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
            size = text_size(built) / text_size(executable)
            found.append(Ratio(program.name, row, counted / base, size, time))
            show(found[-1])
    return found


def pair_time(
    corpus: Corpus, program: Program, stock: Path, built: Path, pairs: int
) -> float:
    """Returns the median ratio of user times in alternating pairs."""
    ratios = []
    with Tester(corpus, program) as tester:
        for _ in range(pairs):
            before, after = (tester.run(one) for one in (stock, built))
            if not (before.passed and after.passed):
                raise ModelError(before.problem or after.problem)
            ratios.append(after.seconds / before.seconds)
    return median(ratios)


def mean(found: Iterable[Ratio], row: str, what: str = "instructions") -> float:
    """Returns the geometric mean of a row over all programs."""
    logs = [math.log(getattr(one, what)) for one in found if one.row == row]
    return math.exp(sum(logs) / len(logs))
