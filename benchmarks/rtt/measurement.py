# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A run: the rows do a sweep in turn, so that the machine's moods hit all alike."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge_benchmarks.common.processes import Placement, Sweep, Worker

from .runners import RUNNERS, Runner
from .workers import Workers
from .workload import Workload

POLICIES = ("echo", "fc")

WARM_ROUNDS = 1  # Rounds that do not count: buffers grow, and caches fill.


@dataclass
class Series:
    """The sweeps of one row; the statistics are arrays over the lengths, in us."""

    sweeps: list[Sweep] = field(default_factory=list)

    @property
    def _times(self) -> NDArray[np.float64]:
        return np.array([sweep.microseconds for sweep in self.sweeps])

    @property
    def median(self) -> NDArray[np.float64]:
        """The medians over the sweeps."""
        return np.asarray(np.median(self._times, axis=0))

    @property
    def mean(self) -> NDArray[np.float64]:
        """The means over the sweeps."""
        return np.asarray(self._times.mean(axis=0))

    @property
    def p99(self) -> NDArray[np.float64]:
        """The 99th percentiles over the sweeps; of few sweeps, about the maximum."""
        return np.asarray(np.percentile(self._times, 99, axis=0))

    @property
    def allocations_per_message(self) -> float:
        """Of the client: a trip is two messages, of which it allocates for both."""
        trips = sum(len(sweep.microseconds) for sweep in self.sweeps)
        return sum(sweep.allocations for sweep in self.sweeps) / trips


@dataclass(frozen=True)
class Subject:
    """A row to be: a runner's, or one that it is held against."""

    runner: Runner
    serdes: str
    policy: str


@dataclass
class Results:
    """What was measured in one placement."""

    placement: Placement
    lengths: tuple[int, ...]
    fresh: bool
    subjects: dict[Subject, Series] = field(default_factory=dict)
    floors: dict[str, Series] = field(default_factory=dict)  # By name.
    # "dot" and, where there is JSON, "stdlib".
    baselines: dict[str, Series] = field(default_factory=dict)


def subjects(runners: Sequence[str], serdes: Sequence[str]) -> list[Subject]:
    """The runners with those of the SerDes that they have."""
    return [
        Subject(RUNNERS[runner], name, policy)
        for runner in runners
        for name in RUNNERS[runner].serdes
        if name in serdes
        for policy in POLICIES
    ]


def rounds_of(sweeps: int) -> int:
    """How many rounds a placement takes."""
    return WARM_ROUNDS + sweeps


def measure(
    placement: Placement,
    work: Workload,
    chosen: Sequence[Subject],
    *,
    sweeps: int,
    fresh: bool,
    build: Path,
    on_round: Callable[[], None],
) -> Results:
    """Measures the subjects and what they are held against, in so many sweeps.

    ``fresh``: a client writes its features anew before each trip.
    """
    results = Results(placement, work.lengths, fresh)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlb")))
        work.save(folder)
        workers = Workers(placement, build, folder, fresh, stack)

        # Each with the policy whose answers it must give.
        rows: list[tuple[Worker, str, Series]] = []
        for floor in dict.fromkeys(f for s in chosen for f in s.runner.floors):
            series = results.floors[floor] = Series()
            rows.append((workers.floor(floor), "echo", series))
        for subject in chosen:
            series = results.subjects[subject] = Series()
            worker = workers.runner(subject.runner, subject.serdes, subject.policy)
            rows.append((worker, subject.policy, series))
        results.baselines["dot"] = Series()
        rows.append((workers.baseline("dot"), "fc", results.baselines["dot"]))
        if any(subject.serdes == "json" for subject in chosen):
            series = results.baselines["stdlib"] = Series()
            rows.append((workers.baseline("stdlib"), "echo", series))

        for i in range(rounds_of(sweeps)):
            for worker, policy, series in rows:
                sweep = worker.sweep()
                work.check(policy, sweep.answers)
                if i >= WARM_ROUNDS:
                    series.sweeps.append(sweep)
            on_round()
    return results
