# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts, asks and reaps the processes of a benchmark, with deadlines."""

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

# The checkout, which contains the plug-in and the models.
ROOT = Path(__file__).resolve().parents[2]
# The programs' sources, fetched on demand.
WORKLOADS = ROOT / "build" / "workloads"
SWEEP_SECONDS = 120.0  # Far more than a sweep takes, even on a busy machine.
ENDING_SECONDS = 5.0
# The clients of `mlbridge bench rtt`, `serve` and `neighbour`.
CLIENTS = ("rtt-client", "serve-client", "rtt_floor*.so")
# A single product is too short to benefit from a second thread.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def runtimes() -> dict[str, str]:
    """Returns variables for models' runtimes: one thread, and ONNX Runtime's path."""
    found = inprocess.onnxruntime()
    return ENVIRONMENT | ({"MLBRIDGE_ONNXRUNTIME": str(found)} if found else {})


@dataclass(frozen=True)
class Placement:
    """The cores of the two sides."""

    name: str
    client: int
    model: int


def placements() -> list[Placement]:
    """Returns both sides on one core and, if there are two cores, on two."""
    cores = sorted(os.sched_getaffinity(0))
    both = [Placement("one-core", cores[-1], cores[-1])]
    if len(cores) > 1:
        both.append(Placement("two-cores", cores[0], cores[-1]))
    return both


@dataclass(frozen=True)
class Sweep:
    """One round trip per length."""

    microseconds: NDArray[np.float64]
    replies: NDArray[np.float32]
    allocations: int  # On the client's heap.


class Worker:
    """A process that answers lines with lines."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        self.name = name
        self._process = process

    def sweep(self) -> Sweep:
        """Requests a sweep with an empty line."""
        self.send("")
        result = json.loads(self.line())
        return Sweep(
            np.array(result["us"]),
            np.array(result["answers"], np.float32),
            result.get("allocations", 0),
        )

    def send(self, line: str) -> None:
        """Sends a line; a process that has ended explains itself on our stderr."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._has_ended() from None

    def meet(self) -> None:
        """Waits until the process has received its first reply."""
        with suppress(PeerClosed):
            if self.line() == "ready\n":
                return
        raise PeerClosed(f"{self.name} did not get its first answer")

    def line(self) -> str:
        """Reads a line, for at most `SWEEP_SECONDS`."""
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
    """Starts a process that inherits `descriptors` and ends with the body.

    It has a session of its own, so that only this process handles Ctrl-C. Its stderr is
    by default ours.
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
    """Returns a path made absolute; if it does not exist, raises with `how`."""
    if not path.exists():
        raise OSFailure(f"there is no {path}; {how}")
    return path.resolve()


def in_checkout(path: str) -> Path:
    """Returns a file of the checkout."""
    return existing(ROOT / path, f"{ROOT} has to be a checkout")


def find_build(given: Path | None, needed: Sequence[str] = CLIENTS) -> Path:
    """Returns the clients' folder, which has a file for each pattern in `needed`."""
    build = given or ROOT / "build" / "release" / "benchmarks"
    for name in needed:
        if not any(build.glob(name)):
            raise OSFailure(
                f"there is no {name} in {build}; run `make build` in a checkout, or "
                "name its folder with --build"
            )
    return build.resolve()


def cpu_seconds_of(process: int) -> float:
    """Returns the CPU time of all threads of a running process so far."""
    try:
        # clock_getcpuclockid(3), which Python lacks: Linux derives the clock from the
        # process ID in this way since 2.6.12; 2 selects the scheduler's time.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        raise PeerClosed(f"process {process} is measured, but has ended") from None


def end_of(said: IO[bytes]) -> str:
    """Returns the last 2000 characters of a process's output file."""
    said.seek(0)
    return said.read().decode(errors="replace").strip()[-2000:]


@dataclass(frozen=True)
class Took:
    """The time of a process, and its stderr."""

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
            # As environments' compilers have: Linux may schedule by session.
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
    """Returns the CPU time of this process's children that have ended."""
    found = map(resource.getrusage, (resource.RUSAGE_CHILDREN, *more))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def own_cpu_seconds() -> float:
    """Returns the CPU time of this process and of its ended children."""
    return children_cpu_seconds(resource.RUSAGE_SELF)
