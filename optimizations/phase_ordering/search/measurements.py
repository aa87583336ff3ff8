# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a search over pipelines has measured, each pipeline on a module once.

Kept in a file: a search that is begun again knows from it all that it tries at first,
but for what had not enough time.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.phase_ordering.compiler.compiler import (
    TIMED_OUT,
    CompilerOptions,
)
from mlbridge_optimizations.phase_ordering.compiler.kept import Kept
from mlbridge_optimizations.phase_ordering.compiler.measure import (
    Measured,
    measure,
    oz_size,
)
from mlbridge_optimizations.phase_ordering.search.search import (
    FAILED_RATIO,
    program_logs,
)

_DIGEST = 24
"""Digits by which a pipeline of thousands of letters is known."""


class Measurements:
    """Sizes of modules by pipelines."""

    def __init__(
        self,
        options: CompilerOptions,
        modules: Sequence[Path],
        *,
        workers: int,
        timeout: float,
        log: Path | None = None,
    ) -> None:
        """Reads the log, and measures what stock -Oz makes of the modules.

        The log is lines of JSON, each of a module and some pipelines.
        """
        self._options, self._workers, self._timeout = options, workers, timeout
        self._kept = Kept(log, options, {})
        self._sizes: dict[Path, dict[str, int | str]] = {path: {} for path in modules}
        for name, lines in self._kept.load_all(modules).items():
            for line in lines:
                known = {p: size for p, size in line.items() if size != TIMED_OUT}
                self._sizes[Path(name)] |= known
        with ThreadPoolExecutor(workers) as pool:
            self._oz = dict(zip(modules, pool.map(oz_size, modules), strict=True))

    @property
    def modules(self) -> list[Path]:
        """Those of which -Oz makes machine code: others say nothing."""
        return [module for module, size in self._oz.items() if size]

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
            with_oz=False,
        ):
            line = _line(missing[module], found)
            self._kept.add(module, line)
            self._sizes[module] |= line
            known += len(missing[module])
            show(known)

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
