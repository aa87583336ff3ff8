# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures code sizes after pipelines, stores them in a file, and chooses a core set.

Interrupted work continues from the file. Pipelines that timed out are tried again.
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

FAILED_RATIO = 2.0  # The size relative to -Oz to assume if the compiler fails.

_DIGEST = 24  # The number of hexadecimal digits in the key of a pipeline.
_OZ = "oz"  # The key of stock -Oz.


class Measurements:
    """The code sizes of modules after pipelines."""

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
        """Reads the log, and measures the modules after stock -Oz.

        If `through_files` is true, objects are written to files. Otherwise sizes are
        measured in the compiler, as in a training. This takes longer, because the
        compiler also measures -Oz.
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
        """The modules that have machine code after -Oz."""
        return [module for module in self._sizes if self._oz[module]]

    def measure(
        self, wanted: Mapping[Path, Sequence[str]], show: Callable[[int], None] = quiet
    ) -> None:
        """Measures modules after the pipelines for which no size is known."""
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
            # Use the last failure, a `ModuleFailed`, for pipelines that were not tried.
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
        """Returns the code size of a module after stock -Oz, in bytes."""
        return self._oz[module]

    def size(self, module: Path, pipeline: str) -> int | str:
        """Returns a measured code size in bytes, or the kind of the failure."""
        return self._sizes[module][_digest(pipeline)]

    def ratio(self, module: Path, pipeline: str) -> float:
        """Returns a measured size relative to -Oz, or `FAILED_RATIO`."""
        return self._ratio(module, _digest(pipeline))

    def score(self, modules: Sequence[Path], pipelines: Sequence[str]) -> float:
        """Returns the `program_score` if each module uses its best pipeline."""
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
    """The code sizes of modules after sequences, in bytes."""

    modules: list[str]  # The paths of the modules.
    programs: list[str]  # The program of each module.
    sequences: list[Order]
    sizes: NDArray[np.float64]  # [modules, sequences].
    oz: NDArray[np.float64]  # The code sizes after stock -Oz, [modules].
    # Each failure is (module, sequence, kind). See `SequenceFailed`.
    failures: list[tuple[str, Order, str]] = field(default_factory=list)

    @property
    def logs(self) -> NDArray[np.float64]:
        """The values of log(size / -Oz), [modules, sequences]."""
        return np.asarray(np.log(self.sizes / self.oz[:, None]))

    def score(self, sizes: NDArray[np.float64]) -> float:
        """Returns the `program_score` of some sizes, [modules]."""
        return program_score(sizes, self.oz, self.programs)

    def ratio(self, sizes: NDArray[np.float64]) -> float:
        """Returns the geomean over programs of size / -Oz for some sizes, [modules]."""
        return float(np.exp(self.score(sizes)))

    def sizes_of(self, choices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the sizes, [modules], if each module uses its chosen sequence."""
        return np.asarray(self.sizes[np.arange(len(choices)), choices], np.float64)

    def greedy(self, count: int) -> list[int]:
        """Returns the indices of `count` sequences that complement each other.

        Each sequence is the best addition to the earlier sequences. When no
        sequence reduces the sizes further, the best single sequences follow, because
        they may help other programs.
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
    """Returns the mean over programs of log(size / -Oz), for summed module sizes."""
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
    """Measures all modules after all sequences. Sizes in the log are reused.

    The table omits modules without machine code, and modules on which all sequences
    fail. Raises InvalidArgument if there are no modules or no sequences.
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
    # Set failures to NaN here, and to FAILED_RATIO below.
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
