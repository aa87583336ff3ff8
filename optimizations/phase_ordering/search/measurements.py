# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures modules after sequences and pipelines, and keeps the sizes in a file.

Interrupted work continues from the file, except for pipelines that timed out. From the
sizes a core set is chosen: the few sequences that suit all modules best.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.show import Show, quiet

from ..environment.actions import Order
from ..environment.compiler import TIMED_OUT, TIMEOUT, EpisodeOptions
from ..environment.kept import Kept
from ..environment.measure import measure, oz_size

FAILED_RATIO = 2.0  # The size / -Oz of a sequence on which the compiler fails.

_DIGEST = 24  # Hexadecimal digits of a pipeline's key.
_OZ = "oz"  # The key of stock -Oz.


class Measurements:
    """Sizes of modules by pipelines."""

    def __init__(
        self,
        options: EpisodeOptions,
        modules: Sequence[Path],
        *,
        workers: int,
        timeout: float,
        log: Path | None = None,
        through_files: bool = True,
    ) -> None:
        """Reads the log, and measures the modules by stock -Oz.

        The log is lines of JSON, each with a module and some pipelines. Objects are
        written to files, or measured in the compiler. The latter takes longer, because
        -Oz is measured there, too, but gives the sizes of a training.
        """
        self._options, self._workers, self._timeout = options, workers, timeout
        self._through_files = through_files
        self._kept = Kept(log, options, {})
        self._sizes: dict[Path, dict[str, int | str]] = {path: {} for path in modules}
        for name, lines in self._kept.load_all(modules).items():
            for line in lines:
                known = {p: size for p, size in line.items() if size != TIMED_OUT}
                self._sizes[Path(name)] |= known
        self._oz = {m: int(s[_OZ]) for m, s in self._sizes.items() if _OZ in s}
        missing = [module for module in modules if module not in self._oz]
        with ThreadPoolExecutor(workers) as pool:
            self._oz |= zip(missing, pool.map(oz_size, missing), strict=True)
        self._not_kept = set(missing)

    @property
    def modules(self) -> list[Path]:
        """The modules with machine code."""
        return [module for module in self._sizes if self._oz[module]]

    def measure(
        self, wanted: Mapping[Path, Sequence[str]], show: Callable[[int], None] = quiet
    ) -> None:
        """Tries pipelines on modules, unless their size is known."""
        missing = {
            module: [p for p in pipelines if _digest(p) not in self._sizes[module]]
            for module, pipelines in wanted.items()
        }
        known = sum(map(len, wanted.values())) - sum(map(len, missing.values()))
        show(known)
        for module, found in measure(
            {module: pipelines for module, pipelines in missing.items() if pipelines},
            self._options.space.prologue,
            timeout=self._timeout,
            jobs=self._workers,
            plugin=self._options.plugin,
            with_oz=not self._through_files,
        ):
            failed = {error.pipeline: error.kind for error in found.failures}
            # After a `ModuleFailed`, the last failure is that of all other pipelines.
            rest = found.failures[-1].kind if found.failures else ""
            line: dict[str, int | str] = {
                _digest(pipeline): found.sizes.get(pipeline, failed.get(pipeline, rest))
                for pipeline in missing[module]
            }
            kept = {_OZ: self._oz[module]} if module in self._not_kept else {}
            self._not_kept.discard(module)
            self._kept.add(module, line | kept)
            self._sizes[module] |= line
            known += len(missing[module])
            show(known)

    def oz(self, module: Path) -> int:
        """Returns the module's bytes by stock -Oz."""
        return self._oz[module]

    def size(self, module: Path, pipeline: str) -> int | str:
        """Returns measured bytes, or the kind of the failure."""
        return self._sizes[module][_digest(pipeline)]

    def ratio(self, module: Path, pipeline: str) -> float:
        """Returns a measured size / -Oz, or `FAILED_RATIO`."""
        return self._ratio(module, _digest(pipeline))

    def score(self, modules: Sequence[Path], pipelines: Sequence[str]) -> float:
        """Returns `program_score` by the best of the pipelines for each module."""
        oz = np.array([self._oz[module] for module in modules], np.float64)
        digests = list(map(_digest, pipelines))
        ratios = [min(self._ratio(it, one) for one in digests) for it in modules]
        programs = list(map(program_of, modules))
        return program_score(np.array(ratios, np.float64) * oz, oz, programs)

    def _ratio(self, module: Path, digest: str) -> float:
        size = self._sizes[module][digest]
        return FAILED_RATIO if isinstance(size, str) else size / self._oz[module]


def _digest(pipeline: str) -> str:
    return hashlib.sha256(pipeline.encode()).hexdigest()[:_DIGEST]


@dataclass
class Table:
    """Sizes of modules by sequences, in bytes of machine code."""

    modules: list[str]  # Files.
    programs: list[str]  # Of the modules.
    sequences: list[Order]
    sizes: NDArray[np.float64]  # [modules, sequences].
    oz: NDArray[np.float64]  # By stock clang's -Oz, [modules].
    # As (module, sequence, kind); see `SequenceFailed`.
    failures: list[tuple[str, Order, str]] = field(default_factory=list)

    @property
    def logs(self) -> NDArray[np.float64]:
        """log(size / -Oz), [modules, sequences]."""
        return np.asarray(np.log(self.sizes / self.oz[:, None]))

    def score(self, sizes: NDArray[np.float64]) -> float:
        """Returns `program_score` of sizes, [modules]."""
        return program_score(sizes, self.oz, self.programs)

    def ratio(self, sizes: NDArray[np.float64]) -> float:
        """Returns the geomean over programs of code / -Oz, for sizes, [modules]."""
        return float(np.exp(self.score(sizes)))

    def sizes_of(self, choices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the sizes by one sequence for each module, [modules]."""
        return np.asarray(self.sizes[np.arange(len(choices)), choices], np.float64)

    def greedy(self, count: int) -> list[int]:
        """Chooses sequences that together make the programs smallest, by number.

        The first is the best single one. When more gain nothing here, the best single
        ones follow, because they may gain something elsewhere.
        """
        chosen: list[int] = []
        smallest = np.full(len(self.modules), np.inf)
        score = np.inf
        alone: list[float] = []
        while len(chosen) < count:
            tried = np.minimum(smallest[:, None], self.sizes)
            scores = list(map(self.score, tried.T))
            alone = alone or scores
            number = int(np.argmin(scores))
            if scores[number] >= score:
                break
            score = scores[number]
            chosen.append(number)
            smallest = np.minimum(smallest, self.sizes[:, number])
        left = set(range(len(self.sequences))) - set(chosen)
        chosen += sorted(left, key=lambda number: (alone[number], number))
        return chosen[:count]

    def part(
        self, rows: NDArray[np.bool_], numbers: Sequence[int] | NDArray[np.int64]
    ) -> "Table":
        """Returns a table of some modules and some sequences."""
        kept = np.flatnonzero(rows)
        return Table(
            [self.modules[row] for row in kept],
            [self.programs[row] for row in kept],
            [self.sequences[number] for number in numbers],
            self.sizes[kept][:, numbers],
            self.oz[kept],
        )


def program_score(
    sizes: NDArray[np.float64], oz: NDArray[np.float64], programs: Sequence[str]
) -> float:
    """Returns the mean over programs of log(all code / that of -Oz)."""
    names, member = np.unique(np.asarray(programs), return_inverse=True)
    ours, stock = np.zeros(len(names)), np.zeros(len(names))
    np.add.at(ours, member, sizes)
    np.add.at(stock, member, oz)
    return float(np.log(ours / stock).mean())


def tabulate(
    options: EpisodeOptions,
    workers: int,
    modules: Sequence[Path],
    sequences: Sequence[Order],
    log: Path | None = None,
    show: Show = quiet,
    *,
    timeout: float = TIMEOUT,
) -> Table:
    """Tries all sequences on all modules, except those in the log without a timeout.

    Modules without machine code, and those on which all sequences fail, are left out.
    InvalidArgument is raised without modules or sequences.
    """
    if not modules or not sequences:
        raise InvalidArgument("expected modules and sequences, found none")
    measured = Measurements(
        options, modules, workers=workers, timeout=timeout, log=log, through_files=False
    )
    pipelines = [options.space.joined(sequence) for sequence in sequences]
    wanted = tuple(dict.fromkeys(pipelines))
    total = len(modules) * len(wanted)
    measured.measure(dict.fromkeys(modules, wanted), lambda done: show(done, total))
    orders = [tuple(sequence) for sequence in sequences]
    rows = {
        module: row
        for module in measured.modules
        for row in [[measured.size(module, pipeline) for pipeline in pipelines]]
        if not all(isinstance(size, str) for size in row)
    }
    oz = np.array([measured.oz(module) for module in rows], np.float64)
    # A failure is NaN at first.
    numbers = [[np.nan if isinstance(s, str) else s for s in r] for r in rows.values()]
    sizes = np.array(numbers, np.float64).reshape(len(rows), len(pipelines))
    sizes = np.where(np.isnan(sizes), FAILED_RATIO * oz[:, None], sizes)
    failures = [
        (str(module), order, size)
        for module, row in rows.items()
        for order, size in zip(orders, row, strict=True)
        if isinstance(size, str)
    ]
    programs = list(map(program_of, rows))
    return Table(list(map(str, rows)), programs, orders, sizes, oz, failures)
