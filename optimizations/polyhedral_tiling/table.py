# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs ``mlbridge-polyhedral``: measures all candidates of a kernel (brute force).

Models are trained on the table, which has the features and the times of each candidate.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import ModelError
from mlbridge_optimizations.built import built_of
from mlbridge_optimizations.corpus.toolchain import run
from mlbridge_optimizations.evaluation import tables
from mlbridge_optimizations.show import quiet

from .kernels import Case

SECONDS = 600


@dataclass(frozen=True)
class Entry:
    """A case's measured candidates.

    Attributes:
        case: the name of the case.
        choices: the candidates as values of the tool's option ``--choice``. The first
            candidate is the original order.
        features: [candidates][features].
        ratios: the time of each candidate relative to the original order's. Only the
            fastest run counts, because other programs only slow runs down.
        milliseconds: the time of the original order.
        again: the ratio of the original order, measured twice.
    """

    case: str
    kernel: str
    split: str
    choices: list[str]
    features: list[list[float]]
    ratios: list[float]
    milliseconds: float
    again: float

    @property
    def best(self) -> int:
        """The index of the fastest candidate."""
        return int(np.argmin(self.ratios))

    def matrix(self) -> NDArray[np.float32]:
        """Returns the features, float32 [candidates, features]."""
        return np.array(self.features, np.float32)


def tool_of(given: Path | None) -> Path:
    """Returns the tool. Raises InvalidArgument if it does not exist."""
    return built_of(given, "mlbridge-polyhedral", option="--tool", package="libisl-dev")


def command_of(tool: Path, case: Case, *options: str) -> list[str]:
    """Returns a command about a case."""
    given = [f"--parameter={one}" for one in case.parameters.split(",") if one]
    return [str(tool), str(case.file), *given, *options]


def candidates_of(tool: Path, case: Case) -> tuple[list[str], NDArray[np.float32]]:
    """Returns the choices of a case, and their features, without running them."""
    said = run(command_of(tool, case, "--list"), seconds=SECONDS)[0]
    found = json.loads(said)["candidates"]
    return [one["choice"] for one in found], np.array(
        [one["features"] for one in found], np.float32
    )


def measure(tool: Path, case: Case, rounds: int) -> Entry:
    """Measures all candidates. Raises ModelError if a candidate's results are wrong."""
    options = ("--measure", f"--rounds={rounds}", f"--seconds={SECONDS}")
    found: dict[str, Any] = json.loads(
        run(command_of(tool, case, *options), seconds=2 * SECONDS + 60)[0]
    )
    candidates = found["candidates"]
    if wrong := [one["choice"] for one in candidates if not one["same"]]:
        raise ModelError(f"{case.name}: {wrong[0]} computes other results")
    times = [min(one["nanoseconds"]) for one in candidates]
    return Entry(
        *(case.name, case.kernel, case.split),
        [one["choice"] for one in candidates],
        [one["features"] for one in candidates],
        [time / times[0] for time in times],
        times[0] / 1e6,
        min(found["again"]) / times[0],
    )


def make_table(
    tool: Path,
    cases: Iterable[Case],
    file: Path,
    *,
    rounds: int = 5,
    advance: Callable[[Entry], None] = quiet,
) -> int:
    """Measures cases that the file lacks, and appends them to the file.

    Returns the number of cases that were measured.
    """
    known = {entry.case for entry in read_table([file])} if file.is_file() else set()
    added = tables.extend_table(
        file,
        (case for case in cases if case.name not in known),
        lambda case: measure(tool, case, rounds),
        advance,
    )
    return len(added)


def read_table(files: Sequence[Path]) -> Iterator[Entry]:
    """Yields the entries of files. See `tables.read_table` for errors."""
    for file in files:
        yield from tables.read_table(file, Entry, "search polyhedral-tiling-times")
