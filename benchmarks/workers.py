# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes of a run: each is started, asked with a deadline, and reaped."""

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import OSFailure, PeerClosed, Timeout
from mlbridge_benchmarks.programs import ROOT
from mlbridge_benchmarks.runners import Runner

SWEEP_SECONDS = 120.0
"""Far more than a sweep takes, also on a busy machine."""

ENDING_SECONDS = 5.0

CLIENTS = ("rtt-client", "serve-client", "rtt_floor*.so")
"""What `mlbridge bench rtt`, `serve` and `neighbour` run."""

PIPE_BYTES = 1 << 20

FLOOR_BYTES = 8 << 20
"""Of the futex floor's memory: more than the longest question takes."""

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""One product is too short to be worth a second thread."""


@dataclass(frozen=True)
class Placement:
    """Which cores the two sides run on."""

    name: str
    client: int
    model: int


def placements() -> list[Placement]:
    """Both sides on one core, and on two where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    both = [Placement("one-core", cores[-1], cores[-1])]
    if len(cores) > 1:
        both.append(Placement("two-cores", cores[0], cores[-1]))
    return both


@dataclass(frozen=True)
class Sweep:
    """One round trip for each length."""

    microseconds: NDArray[np.float64]
    answers: NDArray[np.float32]
    allocations: int
    """Of the client, on its heap."""


class Worker:
    """A process that does one sweep for each line it is sent."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        self.name = name
        self._process = process

    def sweep(self) -> Sweep:
        """Has it do a sweep.

        Raises:
            PeerClosed: it has ended; why is on its stderr, which is ours.
            Timeout: it takes longer than any sweep.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._has_ended() from None
        result = json.loads(self._read_line())
        return Sweep(
            np.array(result["us"]),
            np.array(result["answers"], np.float32),
            result.get("allocations", 0),
        )

    def _has_ended(self) -> PeerClosed:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)
        return PeerClosed(f"{self.name} ended with status {self._process.returncode}")

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        until = time.monotonic() + SWEEP_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            left = max(0.0, until - time.monotonic())
            if not select.select([descriptor], [], [], left)[0]:
                raise Timeout(f"{self.name} took more than {SWEEP_SECONDS:g} s a sweep")
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise self._has_ended()
            line += part
        return line


@contextmanager
def started(
    command: Sequence[str | Path],
    descriptors: Sequence[int] = (),
    stderr: IO[bytes] | None = None,
) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that does not outlive the body.

    It is in a session of its own, so that Ctrl-C is only ours to handle.

    Args:
        command: the program and its arguments.
        descriptors: what it inherits.
        stderr: where it complains, if not on our stderr.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=os.environ | ENVIRONMENT,
        pass_fds=descriptors,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _module(name: str, *arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", f"mlbridge_benchmarks.rtt.{name}", *arguments]


@dataclass(frozen=True)
class Workers:
    """Starts processes in the cores of a placement; they end with the stack."""

    placement: Placement
    build: Path
    """Where rtt-client and the module rtt_floor were built."""
    folder: Path
    """Where the workload is, and whatever else needs a place."""
    fresh: bool
    """Whether a client writes its features anew before each trip."""
    stack: ExitStack

    def _start(
        self, command: Sequence[str | Path], descriptors: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        return self.stack.enter_context(started(command, descriptors))

    def _client(self, name: str, spec: str, descriptors: Sequence[int] = ()) -> Worker:
        features, lengths = self.folder / "features.f32", self.folder / "lengths"
        command: list[str | Path] = [
            self.build / "rtt-client",
            str(self.placement.client),
            features,
            lengths.read_text(),
            "fresh" if self.fresh else "kept",
            spec,
        ]
        return Worker(name, self._start(command, descriptors))

    def runner(self, runner: Runner, serdes: str, policy: str) -> Worker:
        """A compiler that asks a model through a runner."""
        name = f"{runner.name} {serdes} {policy}"
        path = self._address(name, by_port=runner.by_port)
        core = str(self.placement.model)
        self._start(_module("model", core, runner.name, path, policy, self.folder))
        return self._client(name, runner.spec.format(path=path, serdes=serdes))

    def floor(self, name: str) -> Worker:
        """A raw floor, by its name.

        "pipe", "lent-pipe", which copies less, "futex", or "grpc-CALL-WHERE", whose
        server is in C++ too unless "-python" is behind it.
        """
        if name.startswith("grpc-"):
            return self._grpc_floor(name)
        return self._futex_floor() if name == "futex" else self._pipe_floor(name)

    def _address(self, name: str, *, by_port: bool) -> str:
        """Where a model may listen: a port that is free now, or a path."""
        if not by_port:
            return str(self.folder / name.replace(" ", "-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{probe.getsockname()[1]}"

    def _grpc_floor(self, name: str) -> Worker:
        _, call, where, *python = name.split("-")
        place = self._address(name, by_port=where == "tcp")
        address = place if where == "tcp" else f"unix:{place}"
        core = str(self.placement.model)
        if python:
            self._start(_module("grpc_floor", core, address))
        else:
            self._start((self.build / "grpc-floor-server", core, address))
        return self._client(f"raw {name} floor", f"floor:grpc-{call}:{address}")

    def _futex_floor(self) -> Worker:
        memory = os.memfd_create("rtt-floor")
        try:
            os.ftruncate(memory, FLOOR_BYTES)
            core = str(self.placement.model)
            self._start(
                _module("floor", core, self.build, "futex", str(memory)), (memory,)
            )
            return self._client("raw futex floor", f"floor:futex:{memory}", (memory,))
        finally:
            os.close(memory)

    def _pipe_floor(self, name: str) -> Worker:
        model_read, client_write = os.pipe()
        client_read, model_write = os.pipe()
        try:
            for descriptor in (model_read, client_read):
                # Refused past a limit, which holds for the runner's pipes as well.
                with suppress(PermissionError):
                    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            core = str(self.placement.model)
            ends = (str(model_read), str(model_write))
            self._start(
                _module("floor", core, self.build, "pipe", *ends),
                (model_read, model_write),
            )
            return self._client(
                f"raw {name} floor",
                f"floor:{name}:{client_read},{client_write}",
                (client_read, client_write),
            )
        finally:
            for descriptor in (model_read, client_write, client_read, model_write):
                os.close(descriptor)

    def baseline(self, what: str) -> Worker:
        """What Python does alone: "dot" or "stdlib"."""
        core = str(self.placement.model)
        return Worker(what, self._start(_module("baseline", core, what, self.folder)))


def find_build(given: Path | None, needed: Sequence[str] = CLIENTS) -> Path:
    """Where the clients are.

    Args:
        given: the folder, unless it is the usual one.
        needed: what has to be there, as patterns.

    Raises:
        OSFailure: one is not.
    """
    build = given or ROOT / "build" / "release" / "benchmarks"
    for name in needed:
        if not any(build.glob(name)):
            raise OSFailure(
                f"there is no {name} in {build}; `make build` in a checkout makes "
                "it, and --build says where it is otherwise"
            )
    return build.resolve()
