# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records a compile as a table of features and decisions.

The runner `record:FILE|none` lets LLVM decide, and logs features and decisions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge import read_log
from mlbridge.files import spec_of
from mlbridge_optimizations.corpus.sources import SourceProgram

from .toolchain import compile_program, model_flags


@dataclass(frozen=True)
class UnitLog:
    """A translation unit and the log of its inlining decisions."""

    name: str
    log: Path


@dataclass(frozen=True)
class Table:
    """The decisions at n call sites, each with d features."""

    names: tuple[str, ...]  # The names of the d features.
    features: NDArray[np.int64]  # int64[n, d].
    decisions: NDArray[np.bool_]  # bool[n]: True if inlined.
    units: NDArray[np.int64]  # int64[n]: indices into `unit_names`.
    unit_names: tuple[str, ...]  # Names of the translation units.

    def column(self, name: str) -> NDArray[np.int64]:
        """Returns a feature at all call sites: int64[n]."""
        return self.features[:, self.names.index(name)]


def record(
    program: SourceProgram,
    plugin: Path,
    into: Path,
    jobs: int,
    advance: Callable[[], None],
) -> list[UnitLog]:
    """Compiles a program with LLVM's decisions, and logs the decisions to a folder."""
    units = {
        source: UnitLog(f"{program.name}/{source.stem}", into / f"{source.stem}.log")
        for source in program.sources
    }

    def recording(source: Path) -> list[str]:
        log = units[source].log
        log.unlink(missing_ok=True)
        return model_flags(plugin, f"{spec_of('record', log)}|none")

    for _ in compile_program(program, into, extra=recording, jobs=jobs):
        advance()
    return list(units.values())


def read_table(units: Sequence[UnitLog]) -> Table:
    """Reads the logs of translation units."""
    names: tuple[str, ...] = ()
    features, decisions, indices = [], [], []
    for index, unit in enumerate(units):
        # Skip units without call sites, whose log is empty or missing.
        if not unit.log.exists() or unit.log.stat().st_size == 0:
            continue
        log = read_log(unit.log).as_arrays()
        if names and names != tuple(log.features):
            raise ValueError(f"{unit.log} has other features than the logs before it")
        names = tuple(log.features)
        features.append(np.column_stack([*log.features.values()]))
        decisions.append(log.advice.reshape(-1) != 0)
        indices.append(np.full(len(log.advice), index))
    if not names:
        raise ValueError("no decision was logged")
    return Table(
        names,
        np.concatenate(features).astype(np.int64),
        np.concatenate(decisions),
        np.concatenate(indices),
        tuple(unit.name for unit in units),
    )
