# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes of a run: each is started, asked with a deadline, and reaped."""

import json
import os
import resource
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mlbridge import inprocess
from mlbridge.errors import ModelError, OSFailure, PeerClosed, Timeout
from mlbridge_optimizations.corpus import toolchain

# Of the checkout, which has the plug-in and the models.
ROOT = Path(__file__).resolve().parents[2]

# The programs' sources, which are fetched if they are not there.
WORKLOADS = ROOT / "build" / "workloads"

SWEEP_SECONDS = 120.0  # Far more than a sweep takes, also on a busy machine.

ENDING_SECONDS = 5.0

# What `mlbridge bench rtt`, `serve` and `neighbour` run.
CLIENTS = ("rtt-client", "serve-client", "rtt_floor*.so")

# One product is too short to be worth a second thread.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def runtimes() -> dict[str, str]:
    """Variables of models' runtimes: one thread each, and where ONNX Runtime is."""
    found = inprocess.onnxruntime()
    return ENVIRONMENT | ({"MLBRIDGE_ONNXRUNTIME": str(found)} if found else {})


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
    replies: NDArray[np.float32]
    allocations: int  # Of the client, on its heap.


class Worker:
    """A process that answers lines with lines."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        self.name = name
        self._process = process

    def sweep(self) -> Sweep:
        """Has it do a sweep, which an empty line asks for."""
        self.send("")
        result = json.loads(self.line())
        return Sweep(
            np.array(result["us"]),
            np.array(result["answers"], np.float32),
            result.get("allocations", 0),
        )

    def send(self, line: str) -> None:
        """Asks; why it has ended, if it has, is on its stderr, which is ours."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._has_ended() from None

    def meet(self) -> None:
        """Waits until it is ready, which is when it has had its first answer."""
        with suppress(PeerClosed):
            if self.line() == "ready\n":
                return
        raise PeerClosed(f"{self.name} did not get its first answer")

    def line(self) -> str:
        """The next that it says; far later than any sweep takes it is given up."""
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
        return line.decode()

    def _has_ended(self) -> PeerClosed:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)
        return PeerClosed(f"{self.name} ended with status {self._process.returncode}")


@contextmanager
def started(
    command: Sequence[str | Path],
    descriptors: Sequence[int] = (),
    stderr: IO[bytes] | None = None,
    variables: Mapping[str, str] = ENVIRONMENT,
) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that does not outlive the body, and inherits some descriptors.

    It is in a session of its own, so that Ctrl-C is only ours to handle. It complains
    on ``stderr``, which is ours if it is not said.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, **variables},
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


def existing(path: Path, how: str) -> Path:
    """A file or a folder, or else how to come by it."""
    if not path.exists():
        raise OSFailure(f"there is no {path}; {how}")
    return path.resolve()


def in_checkout(path: str) -> Path:
    """A file of the checkout."""
    return existing(ROOT / path, f"{ROOT} has to be a checkout")


def find_build(given: Path | None, needed: Sequence[str] = CLIENTS) -> Path:
    """Where the clients are: a folder that has files of all the patterns ``needed``."""
    build = given or ROOT / "build" / "release" / "benchmarks"
    for name in needed:
        if not any(build.glob(name)):
            raise OSFailure(
                f"there is no {name} in {build}; `make build` in a checkout makes "
                "it, and --build says where it is otherwise"
            )
    return build.resolve()


def cpu_seconds_of(process: int) -> float:
    """What a process that runs has taken so far, by all its threads."""
    try:
        # clock_getcpuclockid(3), which Python lacks: Linux has made the clock so of the
        # number since 2.6.12; 2 is for the time that the scheduler counts.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        raise PeerClosed(f"process {process} is measured, but has ended") from None


def end_of(said: IO[bytes]) -> str:
    """The last of what a process has written to a file."""
    said.seek(0)
    return said.read().decode(errors="replace").strip()[-2000:]


@dataclass(frozen=True)
class Took:
    """What a process took, of time and of the cores."""

    seconds: float
    cpu_seconds: float
    stderr: str


def timed(
    command: Sequence[str | Path],
    variables: Mapping[str, str] | None = None,
    seconds: float = toolchain.SECONDS,
) -> Took:
    """Runs a command, by default with the variables of `runtimes`."""
    words = " ".join(map(str, command))
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, **(runtimes() if variables is None else variables)},
            # As environments' compilers are: Linux may share cores out by session.
            start_new_session=True,
        ) as process:
            usage = toolchain.wait_for(process, words, seconds)
        took = time.perf_counter() - start
        if process.returncode:
            raise ModelError(
                f"status {process.returncode} from: {words}\n{end_of(said)}"
            )
        said.seek(0)
        text = said.read().decode(errors="replace")
    return Took(took, usage.ru_utime + usage.ru_stime, text)


def children_cpu_seconds(*more: int) -> float:
    """Of the processes that this one has started and that have ended."""
    found = map(resource.getrusage, (resource.RUSAGE_CHILDREN, *more))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def own_cpu_seconds() -> float:
    """Of this process, and of those."""
    return children_cpu_seconds(resource.RUSAGE_SELF)
