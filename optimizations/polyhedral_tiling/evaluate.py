# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates a model on held-out kernels and held-out sizes.

The model decides in mlbridge-polyhedral. Four variants run alternately: the model's
choice, the original order, tiles of 32, and the best candidate of an earlier
measurement of all candidates (brute force).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import ModelError
from mlbridge_optimizations.corpus.toolchain import run
from mlbridge_optimizations.evaluation.statistics import median_interval
from mlbridge_optimizations.show import quiet

from .kernels import Case
from .table import SECONDS, Entry, command_of

ORIGINAL = "0"


@dataclass(frozen=True)
class Result:
    """A case's results.

    Each ratio is a time divided by the time in the original order, as the median of
    several measurements.

    Attributes:
        choice: the model's choice.
        again: the 95 % interval of the ratio of two runs in the original order.
        low: the lower end of the 95 % interval of `model`.
    """

    case: str
    split: str
    choice: str
    best_choice: str
    milliseconds: float
    model: float
    low: float
    best: float
    default: float
    again: tuple[float, float]

    @property
    def is_slower(self) -> bool:
        """Whether the model's choice is slower by more than the noise."""
        return self.low > max(1.0, self.again[1])


def default_choice(choices: Sequence[str]) -> str:
    """Returns isl's schedule with tiles of 32, or the original order."""
    for choice in choices:
        schedule, *rest = choice.split(":")
        sizes, order = rest if rest else ("", "")
        if (
            schedule == "1"
            and {"32"} <= set(sizes.split(",")) <= {"0", "32"}
            and order.split(",") == sorted(order.split(","), key=int)
        ):
            return choice
    return ORIGINAL


def model_choice(tool: Path, case: Case, spec: str) -> str:
    """Returns the choice of a model. Raises ModelError if the tool prints a warning."""
    out, said = run(command_of(tool, case, "--model", spec), seconds=SECONDS)
    if said:
        raise ModelError(f"{case.name}: {said.decode().strip()}")
    return out.decode().partition("choice ")[2].partition(".")[0]


def compare(tool: Path, case: Case, entry: Entry, spec: str, rounds: int) -> Result:
    """Measures a case."""
    best = entry.choices[entry.best]
    choices = [
        model_choice(tool, case, spec),
        best,
        default_choice(entry.choices),
    ]
    options = ["--measure", f"--rounds={rounds}", f"--seconds={SECONDS}"]
    options += [f"--choice={one}" for one in choices]
    said = run(command_of(tool, case, *options), seconds=2 * SECONDS + 60)[0]
    found = json.loads(said)
    if not all(one["same"] for one in found["candidates"]):
        raise ModelError(f"{case.name}: a choice computes other results")
    original, *others = (
        np.array(one["nanoseconds"], np.float64) for one in found["candidates"]
    )

    def ratios(times: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = times / original[: len(times)]
        return found

    model, best_ratio, default = (float(np.median(ratios(one))) for one in others)
    return Result(
        *(case.name, case.split, choices[0], best),
        float(np.median(original)) / 1e6,
        model,
        median_interval(ratios(others[0]))[0],
        best_ratio,
        default,
        median_interval(ratios(np.array(found["again"]))),
    )


@dataclass(frozen=True)
class Summary:
    """Geometric means over cases.

    Attributes:
        share: the speed of the model's choices relative to the best candidates.
        slower: the cases that became slower by more than the noise.
    """

    model: float
    best: float
    default: float
    share: float
    slower: list[str]


def summarise(results: Sequence[Result]) -> Summary:
    """Summarises cases."""
    return Summary(
        geometric_mean([one.model for one in results]),
        geometric_mean([one.best for one in results]),
        geometric_mean([one.default for one in results]),
        geometric_mean([one.best / one.model for one in results]),
        [one.case for one in results if one.is_slower],
    )


def compare_all(
    tool: Path,
    cases: Sequence[Case],
    entries: Sequence[Entry],
    spec: str,
    rounds: int,
    advance: Callable[[Result], None] = quiet,
) -> list[Result]:
    """Measures the cases that have been measured by brute force."""
    by_name = {entry.case: entry for entry in entries}
    found = []
    for case in cases:
        if case.name in by_name:
            found.append(compare(tool, case, by_name[case.name], spec, rounds))
            advance(found[-1])
    return found
