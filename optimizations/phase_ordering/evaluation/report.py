# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports an evaluation as a table, as JSON or as a plot."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
from rich.table import Column, Table

from mlbridge_optimizations.evaluation.statistics import DRAWS, middle
from mlbridge_optimizations.plot import panels_of

from .evaluate import Array, Evaluation, Way


@dataclass(frozen=True)
class Interval:
    """A geomean with its 95 % interval from the bootstrap."""

    mean: float
    low: float
    high: float


class Statistics:
    """Computes sizes relative to -Oz, and their geomeans over programs.

    The bootstrap resamples the files of each program, so the intervals hold for these
    programs only. All ways use the same draws, so comparisons are paired.
    """

    def __init__(
        self, evaluation: Evaluation, seed: int = 0, what: str = "Machine code"
    ) -> None:
        """Makes the draws. The table's title names ``what`` was measured."""
        self.evaluation, self._what = evaluation, what
        names, member = np.unique(np.array(evaluation.programs), return_inverse=True)
        self.programs = [str(name) for name in names]
        # A matrix [files, programs] that is 1 at the program of each file.
        self._members: Array = np.eye(len(names))[member]
        draw = np.random.default_rng(seed)
        weights = np.zeros((DRAWS, len(member)))
        for number in range(len(names)):
            inside = np.flatnonzero(member == number)
            shares = np.full(len(inside), 1 / len(inside))
            weights[:, inside] = draw.multinomial(len(inside), shares, DRAWS)
        self._weights = weights
        self._drawn = {way.name: self._logs(way.sizes) for way in evaluation.ways}

    def by_program(self, way: Way) -> dict[str, float]:
        """Returns a dict from program to its size relative to -Oz."""
        ours, stock = way.sizes @ self._members, self.evaluation.oz @ self._members
        return dict(zip(self.programs, map(float, ours / stock), strict=True))

    def interval(self, way: Way) -> Interval:
        """Returns the geomean over programs with its interval."""
        mean = geometric_mean(self.by_program(way).values())
        return Interval(mean, *middle(np.exp(self._drawn[way.name])))

    def mean_of(self, ways: Sequence[Way]) -> Interval:
        """Returns the mean of several ways' geomeans with its interval."""
        mean = fmean(self.interval(way).mean for way in ways)
        drawn = np.mean([np.exp(self._drawn[way.name]) for way in ways], axis=0)
        return Interval(mean, *middle(drawn))

    def difference(self, way: Way, other: Way) -> tuple[float, float]:
        """Returns the 95 % interval of way / other. Below 1, `way` is smaller."""
        return middle(np.exp(self._drawn[way.name] - self._drawn[other.name]))

    def wins(self, way: Way) -> int:
        """Returns the number of files that are smaller than with -Oz on average."""
        return int((way.sizes < self.evaluation.oz).sum())

    def _logs(self, sizes: Array) -> Array:
        """Returns the mean log ratio over programs, for each bootstrap draw."""
        ours = (self._weights * sizes) @ self._members
        stock = (self._weights * self.evaluation.oz) @ self._members
        return np.asarray(np.log(ours / stock).mean(axis=1))

    def table(self) -> Table:
        """Returns a table with geomean, interval and programs for each way."""
        found = self.evaluation
        table = Table(
            Column("way", no_wrap=True),
            title=f"{self._what} / clang -Oz, {len(found.files)} files, each by itself",
        )
        for column in ("emitted", "geomean", "95 %", "smaller", *self.programs):
            table.add_column(column, justify="right")
        for way in found.ways:
            interval = self.interval(way)
            table.add_row(
                way.name,
                str(way.emitted),
                f"{interval.mean:.4f}",
                f"{interval.low:.4f}-{interval.high:.4f}",
                f"{self.wins(way)}/{len(found.files)}",
                *(f"{ratio:.4f}" for ratio in self.by_program(way).values()),
            )
        return table

    def pairs(self) -> list[str]:
        """Compares the model with each baseline that makes as many objects."""
        ways = self.evaluation.ways
        models = [way for way in ways if way.name.startswith("model")]
        others = [way for way in ways if not way.name.startswith(("model", "clang"))]
        lines = []
        for way, other in product(models, others):
            if other.emitted == way.emitted:
                low, high = self.difference(way, other)
                verdict = "smaller" if high < 1 else "larger"
                if low <= 1 <= high:
                    verdict = "not clearly different"
                names = f"{way.name} / {other.name}"
                lines.append(f"{names}: {low:.4f} to {high:.4f}, {verdict}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Returns all results, per file and per program, as values of JSON."""
        found = self.evaluation
        ways = [
            {
                "name": way.name,
                "tries": way.tries,
                "objects_emitted_to_decide": way.emitted,
                "draws": way.draws,
                "state": "last",
                "geomean": vars(self.interval(way)),
                "programs": self.by_program(way),
                "files_smaller_than_oz": self.wins(way),
                # Round, because the mean of several draws may not be an integer.
                "sizes": [int(x) if x == int(x) else round(x, 1) for x in sizes],
            }
            for way in found.ways
            for sizes in [way.sizes.tolist()]
        ]
        return {
            "files": found.files,
            "programs": found.programs,
            "oz": [int(size) for size in found.oz],
            "ways": ways,
            "comparisons": self.pairs(),
            "failures": [asdict(failure) for failure in found.failures],
        }

    def instructions(self) -> "Statistics | None":
        """Returns the statistics by IR instructions, or None if none were counted."""
        by = self.evaluation.instructions
        return Statistics(by, what="IR instructions") if by else None

    def plot(self, path: Path) -> None:
        """Writes a plot of the ways as PNG."""
        shown = [w for w in self.evaluation.ways if not w.name.startswith("clang -O2")]
        draw(
            path,
            [
                (w.name, self.interval(w), list(self.by_program(w).items()))
                for w in shown
            ],
        )


Row = tuple[str, Interval, Sequence[tuple[str, float]]]
"""The name of a way, its geomean with interval, and its ratio for each program."""


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Writes a plot with one line per way: interval, geomean and programs."""
    with panels_of(path, size=(10, 1.7 + 0.45 * len(rows))) as (axes,):
        for row, (name, found, programs) in enumerate(rows):
            colour = "C1" if "model" in name else "C0"
            axes.plot([found.low, found.high], [row, row], color=colour, lw=4)
            axes.plot(found.mean, row, "o", color=colour, ms=9)
            axes.annotate(
                f"{found.mean:.4f}",
                (found.mean, row),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize="small",
            )
            for (program, ratio), marker in zip(programs, "v^<>sDPX", strict=False):
                label = program if row == 0 else None
                axes.plot(ratio, row, marker, color="0.35", ms=5, label=label)
        axes.axvline(1, color="0.5", ls="--")
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.invert_yaxis()
        axes.margins(y=0.12)
        axes.set_xlabel(
            "code size / clang -Oz: smaller is better (bars: 95 % interval)"
        )
        axes.grid(visible=True, axis="x", alpha=0.25)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
