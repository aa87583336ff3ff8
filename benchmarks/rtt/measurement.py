# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures all processes alternately, so that noise affects them equally."""

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge_benchmarks.common.processes import (
    ENVIRONMENT,
    Placement,
    Sweep,
    Worker,
    started,
)

from .runners import RUNNERS, Runner
from .workload import POLICIES, Workload

WARM_ROUNDS = 1  # Not measured, because buffers grow and caches fill.
PIPE_BYTES = 1 << 20
MLIR_PLUGIN = "rtt-mlir.so"
FLOOR_BYTES = 8 << 20  # The futex floor's memory, which fits the longest request.


@dataclass(frozen=True)
class Workers:
    """Starts processes on the cores of a placement. Closing `stack` ends them."""

    placement: Placement
    build: Path  # The folder of rtt-client and rtt_floor.
    folder: Path  # For the workload and temporary files.
    fresh: bool  # True if a client writes its features before each trip.
    stack: ExitStack
    in_pass: bool = False  # True if the clients are passes of mlir-opt.

    def _start(
        self,
        command: Sequence[str | Path],
        descriptors: Sequence[int] = (),
        variables: Mapping[str, str] = ENVIRONMENT,
    ) -> "subprocess.Popen[bytes]":
        return self.stack.enter_context(
            started(command, descriptors, variables=variables)
        )

    def _peer(
        self, what: str, *arguments: str | Path, descriptors: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "mlbridge_benchmarks.rtt.peers"]
        core = str(self.placement.model)
        return self._start([*command, core, what, *arguments], descriptors)

    def _client(self, name: str, spec: str, descriptors: Sequence[int] = ()) -> Worker:
        features, lengths = self.folder / "features.f32", self.folder / "lengths"
        arguments: list[str | Path] = [
            str(self.placement.client),
            features,
            lengths.read_text(),
            "fresh" if self.fresh else "kept",
            spec,
        ]
        if not self.in_pass:
            command = [self.build / "rtt-client", *arguments]
            return Worker(name, self._start(command, descriptors))
        empty = self.folder / "empty.mlir"
        empty.touch()
        compiler: list[str | Path] = [
            *("mlir-opt-22", f"--load-pass-plugin={self.build / MLIR_PLUGIN}"),
            *("--pass-pipeline=builtin.module(mlbridge-rtt)", empty),
        ]
        lines = "\n".join(map(str, arguments))
        variables = {**ENVIRONMENT, "MLBRIDGE_RTT_ARGUMENTS": lines}
        return Worker(name, self._start(compiler, descriptors, variables))

    def runner(self, subject: "Subject") -> Worker:
        """Starts a model, and a compiler that sends requests through a runner."""
        runner, name = subject.runner, str(subject)
        path = self._address(name, by_port=runner.by_port)
        self._peer("model", runner.name, path, subject.policy, self.folder)
        return self._client(name, runner.spec.format(path=path, serdes=subject.serdes))

    def floor(self, name: str) -> Worker:
        """Starts both ends of a floor.

        The name is "pipe", "lent-pipe" (with fewer copies), "futex", "grpc-CALL-WHERE"
        (with a C++ server) or "grpc-CALL-WHERE-python". CALL is stream or unary, and
        WHERE is tcp or unix.
        """
        if name.startswith("grpc-"):
            return self._grpc_floor(name)
        return self._futex_floor() if name == "futex" else self._pipe_floor(name)

    def _address(self, name: str, *, by_port: bool) -> str:
        """Returns an address for a model, which is a free port or a path."""
        if not by_port:
            return str(self.folder / name.replace(" ", "-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{probe.getsockname()[1]}"

    def _grpc_floor(self, name: str) -> Worker:
        _, call, where, *python = name.split("-")
        place = self._address(name, by_port=where == "tcp")
        address = place if where == "tcp" else f"unix:{place}"
        if python:
            self._peer("grpc_floor", address)
        else:
            core = str(self.placement.model)
            self._start((self.build / "grpc-floor-server", core, address))
        return self._client(f"raw {name} floor", f"floor:grpc-{call}:{address}")

    def _futex_floor(self) -> Worker:
        memory = os.memfd_create("rtt-floor")
        try:
            os.ftruncate(memory, FLOOR_BYTES)
            self._peer("floor", self.build, "futex", str(memory), descriptors=(memory,))
            return self._client("raw futex floor", f"floor:futex:{memory}", (memory,))
        finally:
            os.close(memory)

    def _pipe_floor(self, name: str) -> Worker:
        model_read, client_write = os.pipe()
        client_read, model_write = os.pipe()
        try:
            for descriptor in (model_read, client_read):
                # If the system forbids this size, keep the default size, like the
                # runner's pipes.
                with suppress(PermissionError):
                    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            ends = model_read, model_write
            self._peer("floor", self.build, "pipe", *map(str, ends), descriptors=ends)
            return self._client(
                f"raw {name} floor",
                f"floor:{name}:{client_read},{client_write}",
                (client_read, client_write),
            )
        finally:
            for descriptor in (model_read, client_write, client_read, model_write):
                os.close(descriptor)

    def baseline(self, what: str) -> Worker:
        """Starts a baseline in Python without a transport: "dot" or "stdlib"."""
        return Worker(what, self._peer("baseline", what, self.folder))


@dataclass
class Series:
    """The sweeps of a table's row. Each statistic has one time in µs per length."""

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
        """The 99th percentiles, which are near the maxima if there are few sweeps."""
        return np.asarray(np.percentile(self._times, 99, axis=0))

    @property
    def allocations_per_message(self) -> float:
        """The client's heap allocations per trip. A trip is a request and a reply."""
        trips = sum(len(sweep.microseconds) for sweep in self.sweeps)
        return sum(sweep.allocations for sweep in self.sweeps) / trips


@dataclass(frozen=True)
class Subject:
    """The subject of a row: a runner, a SerDes and a policy."""

    runner: Runner
    serdes: str
    policy: str

    def __str__(self) -> str:
        return f"{self.runner.name} {self.serdes} {self.policy}"


@dataclass
class Results:
    """All measurements in one placement."""

    placement: Placement
    lengths: tuple[int, ...]
    fresh: bool
    subjects: dict[Subject, Series] = field(default_factory=dict)
    floors: dict[str, Series] = field(default_factory=dict)  # Maps names to floors.
    baselines: dict[str, Series] = field(default_factory=dict)  # "dot" and "stdlib".


def subjects(runners: Sequence[str], serdes: Sequence[str]) -> list[Subject]:
    """Returns the combinations of runners, their supported SerDes, and policies."""
    return [
        Subject(RUNNERS[runner], name, policy)
        for runner in runners
        for name in RUNNERS[runner].serdes
        if name in serdes
        for policy in POLICIES
    ]


def rounds_of(sweeps: int) -> int:
    """Returns the number of rounds per placement."""
    return WARM_ROUNDS + sweeps


def measure(
    placement: Placement,
    work: Workload,
    chosen: Sequence[Subject],
    sweeps: int,
    fresh: bool,  # True if a client writes its features before each trip.
    build: Path,
    on_round: Callable[[], None],
    in_pass: bool = False,  # True if the clients are passes of mlir-opt.
) -> Results:
    """Measures the subjects, their floors and the baselines alternately."""
    results = Results(placement, work.lengths, fresh)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlb")))
        work.save(folder)
        workers = Workers(placement, build, folder, fresh, stack, in_pass)

        # The worker, the policy that determines its replies, and the results.
        rows: list[tuple[Worker, str, Series]] = []
        for floor in dict.fromkeys(f for s in chosen for f in s.runner.floors):
            series = results.floors[floor] = Series()
            rows.append((workers.floor(floor), "echo", series))
        for subject in chosen:
            series = results.subjects[subject] = Series()
            rows.append((workers.runner(subject), subject.policy, series))
        has_json = any(subject.serdes == "json" for subject in chosen)
        for name, policy in [("dot", "fc"), ("stdlib", "echo")][: 1 + has_json]:
            series = results.baselines[name] = Series()
            rows.append((workers.baseline(name), policy, series))

        for i in range(rounds_of(sweeps)):
            for worker, policy, series in rows:
                sweep = worker.sweep()
                work.check(policy, sweep.replies)
                if i >= WARM_ROUNDS:
                    series.sweeps.append(sweep)
            on_round()
    return results
