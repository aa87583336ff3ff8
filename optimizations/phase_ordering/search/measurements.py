# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What sequences and pipelines make of modules: each is measured once, and kept.

What was cut short and is begun again knows from the file all that it tries at first,
but for what had not enough time. Of what is known the few are chosen that serve all
modules best: the core set of "Learning Compiler Pass Orders using Coreset and
Normalized Value Prediction" (ICML 2023).
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
from mlbridge_optimizations.show import Show

from ..environment.actions import Order
from ..environment.compiler import TIMED_OUT, TIMEOUT, EpisodeOptions
from ..environment.kept import Kept
from ..environment.measure import Measured, measure, oz_size

# What a sequence that the compiler does not survive on a module counts as.
FAILED_RATIO = 2.0

_DIGEST = 24  # Digits by which a pipeline of thousands of letters is known.
_OZ = "oz"  # By which in a line what stock -Oz makes is known.


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
        """Reads the log, and measures what stock -Oz makes of the modules.

        The log is lines of JSON, each of a module and some pipelines. Objects are
        written to files, or all is measured in the compiler: it takes longer, since
        -Oz is measured there, too, and is the size that a training sees.
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
        """Those of which -Oz makes machine code: others say nothing."""
        return [module for module in self._sizes if self._oz[module]]

    def measure(
        self,
        wanted: Mapping[Path, Sequence[str]],
        show: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Tries pipelines on modules, where what they make is not known."""
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
            line = _line(missing[module], found)
            kept = {_OZ: self._oz[module]} if module in self._not_kept else {}
            self._not_kept.discard(module)
            self._kept.add(module, line | kept)
            self._sizes[module] |= line
            known += len(missing[module])
            show(known)

    def oz(self, module: Path) -> int:
        """What stock -Oz makes of it, in bytes."""
        return self._oz[module]

    def size(self, module: Path, pipeline: str) -> int | str:
        """Bytes of what has been measured; of what failed, how."""
        return self._sizes[module][_digest(pipeline)]

    def ratio(self, module: Path, pipeline: str) -> float:
        """Size / -Oz of what has been measured; `FAILED_RATIO` where that failed."""
        return self._ratio(module, _digest(pipeline))

    def score(self, modules: Sequence[Path], pipelines: Sequence[str]) -> float:
        """Mean over programs of log(all code / that of -Oz), by the best for each."""
        oz = np.array([self._oz[module] for module in modules], np.float64)
        digests = list(map(_digest, pipelines))
        ratios: NDArray[np.float64] = np.array(
            [min(self._ratio(module, one) for one in digests) for module in modules]
        )
        programs = [program_of(module) for module in modules]
        return float(program_logs(ratios * oz, oz, programs)[1].mean())

    def _ratio(self, module: Path, digest: str) -> float:
        size = self._sizes[module][digest]
        return FAILED_RATIO if isinstance(size, str) else size / self._oz[module]


def _line(pipelines: Sequence[str], found: Measured) -> dict[str, int | str]:
    """Bytes by digest; of what failed, how."""
    failed = {error.pipeline: error.kind for error in found.failures}
    # Where no compiler survives the module, the last failure is that of all.
    rest = found.failures[-1].kind if found.failures else ""
    return {
        _digest(pipeline): found.sizes.get(pipeline, failed.get(pipeline, rest))
        for pipeline in pipelines
    }


def _digest(pipeline: str) -> str:
    return hashlib.sha256(pipeline.encode()).hexdigest()[:_DIGEST]


@dataclass
class Table:
    """What sequences make of modules: bytes of machine code."""

    modules: list[str]  # Files.
    programs: list[str]  # Of these.
    sequences: list[Order]  # That were tried.
    sizes: NDArray[np.float64]  # [modules, sequences].
    oz: NDArray[np.float64]  # Of stock clang's -Oz, [modules].
    # What the compiler did not survive, as (module, sequence, ``crash``, ``timeout`` or
    # ``refused``).
    failures: list[tuple[str, Order, str]] = field(default_factory=list)

    @property
    def logs(self) -> NDArray[np.float64]:
        """log(size / -Oz), [modules, sequences]."""
        return np.asarray(np.log(self.sizes / self.oz[:, None]))

    def score(self, sizes: NDArray[np.float64]) -> float:
        """Mean over programs of log(all its code / that of -Oz); [modules] sizes."""
        return float(program_logs(sizes, self.oz, self.programs)[1].mean())

    def ratio(self, sizes: NDArray[np.float64]) -> float:
        """The geomean over programs of all its code / that of -Oz; [modules] sizes."""
        return float(np.exp(self.score(sizes)))

    def sizes_of(self, choices: NDArray[np.int64]) -> NDArray[np.float64]:
        """By one sequence for each module, [modules]."""
        return np.asarray(self.sizes[np.arange(len(choices)), choices], np.float64)

    def greedy(self, count: int) -> list[int]:
        """So many sequences that together make the programs smallest, by number.

        The first is the best single one. Where more would gain nothing here, those
        that are best by themselves come next: elsewhere they may gain something.
        """
        chosen: list[int] = []
        smallest = np.full(len(self.modules), np.inf)
        score = np.inf
        alone: list[float] = []
        while len(chosen) < count:
            scores = [
                self.score(np.minimum(smallest, self.sizes[:, number]))
                for number in range(len(self.sequences))
            ]
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
        """Some of the modules, and some of the sequences."""
        kept = np.flatnonzero(rows)
        return Table(
            [self.modules[row] for row in kept],
            [self.programs[row] for row in kept],
            [self.sequences[number] for number in numbers],
            self.sizes[kept][:, numbers],
            self.oz[kept],
        )


def program_logs(
    sizes: NDArray[np.float64], oz: NDArray[np.float64], programs: Sequence[str]
) -> tuple[list[str], NDArray[np.float64]]:
    """Programs, and log(all code / that of -Oz) of each."""
    names, member = np.unique(np.asarray(programs), return_inverse=True)
    ours, stock = np.zeros(len(names)), np.zeros(len(names))
    np.add.at(ours, member, sizes)
    np.add.at(stock, member, oz)
    return list(map(str, names)), np.log(ours / stock)


def tabulate(
    options: EpisodeOptions,
    workers: int,
    modules: Sequence[Path],
    sequences: Sequence[Order],
    log: Path | None = None,
    show: Show = lambda done, total: None,
    *,
    timeout: float = TIMEOUT,
) -> Table:
    """Tries all sequences on all modules; what the log has is not tried again.

    Only what had not enough time is. Modules without machine code are left out, and
    those of which no sequence makes any.

    Raises:
        InvalidArgument: there is nothing to try, or nothing to try it on.
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
    rows = {
        module: row
        for module in measured.modules
        for row in [[measured.size(module, pipeline) for pipeline in pipelines]]
        if not all(isinstance(size, str) for size in row)
    }
    oz = {module: measured.oz(module) for module in rows}
    sizes = [
        [FAILED_RATIO * oz[module] if isinstance(s, str) else s for s in row]
        for module, row in rows.items()
    ]
    return Table(
        list(map(str, rows)),
        list(map(program_of, rows)),
        [tuple(sequence) for sequence in sequences],
        np.array(sizes, np.float64).reshape(len(rows), len(pipelines)),
        np.array(list(oz.values()), np.float64),
        [
            (str(module), tuple(sequence), size)
            for module, row in rows.items()
            for sequence, size in zip(sequences, row, strict=True)
            if isinstance(size, str)
        ],
    )
