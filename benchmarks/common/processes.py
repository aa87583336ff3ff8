# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts and ends the processes of a benchmark, and exchanges lines with them."""

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
from mlbridge.errors import Error, ModelError, OSFailure, PeerClosed, Timeout
from mlbridge_optimizations.corpus import toolchain

# The checkout, which contains the plug-in and the models.
ROOT = Path(__file__).resolve().parents[2]
# The sources of the programs to compile, which are downloaded when they are needed.
WORKLOADS = ROOT / "build" / "workloads"
SWEEP_SECONDS = 120.0  # The time limit of a sweep.
START_SECONDS = 120.0  # The time limit for a server's start.
ENDING_SECONDS = 5.0
# The clients of `mlbridge bench rtt`, `serve` and `neighbour`.
CLIENTS = ("rtt-client", "serve-client", "rtt_floor*.so")
# Use one thread, because a single matrix product is too short to benefit from two.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def runtimes() -> dict[str, str]:
    """Returns variables for runtimes: one thread, and the path of ONNX Runtime."""
    found = inprocess.onnxruntime()
    return ENVIRONMENT | ({"MLBRIDGE_ONNXRUNTIME": str(found)} if found else {})


@dataclass(frozen=True)
class Placement:
    """The cores on which the client and the model run."""

    name: str
    client: int
    model: int


def placements() -> list[Placement]:
    """Returns a one-core placement and, if possible, a two-core placement."""
    cores = sorted(os.sched_getaffinity(0))
    both = [Placement("one-core", cores[-1], cores[-1])]
    if len(cores) > 1:
        both.append(Placement("two-cores", cores[0], cores[-1]))
    return both


@dataclass(frozen=True)
class Sweep:
    """The results of one round trip per length."""

    microseconds: NDArray[np.float64]
    replies: NDArray[np.float32]
    allocations: int  # The number of the client's heap allocations.


class Worker:
    """A process that replies to each line with a line."""

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
        """Sends a line. Raises PeerClosed if the process has ended."""
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
    """Starts a process that inherits `descriptors`, and ends it after the body.

    The process has its own session, so that Ctrl-C reaches only the benchmark. By
    default, the process inherits our stderr.
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
    """Returns the absolute path.

    If nothing exists there, raises an error that ends with `how`.
    """
    if not path.exists():
        raise OSFailure(f"there is no {path}; {how}")
    return path.resolve()


def in_checkout(path: str) -> Path:
    """Returns the path of a file in the checkout."""
    return existing(ROOT / path, f"{ROOT} has to be a checkout")


def find_build(given: Path | None, needed: Sequence[str] = CLIENTS) -> Path:
    """Returns the clients' folder. Checks that each pattern in `needed` has a file."""
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
        # Compute the clock's ID, because Python lacks clock_getcpuclockid(3). Linux has
        # used this formula since 2.6.12. The 2 selects the scheduler's time.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        raise PeerClosed(f"process {process} is measured, but has ended") from None


def end_of(said: IO[bytes]) -> str:
    """Returns the last 2000 characters of a process's output file."""
    said.seek(0)
    return said.read().decode(errors="replace").strip()[-2000:]


@dataclass(frozen=True)
class Server:
    """A running model process."""

    process: "subprocess.Popen[bytes]"
    start_seconds: float  # The time until the server accepted connections.

    def cpu_seconds(self) -> float:
        """Returns the server's CPU time so far."""
        return cpu_seconds_of(self.process.pid)


@contextmanager
def listening(
    spec: str,
    command: Sequence[str | Path],
    variables: Mapping[str, str] = ENVIRONMENT,
) -> Iterator[Server]:
    """Starts the command that serves a spec, and ends the server after the body."""
    scheme, _, path = spec.partition(":")
    listener = Path(path if scheme.startswith("grpc") else f"{path}.sock")
    start = time.monotonic()
    # Redirect stderr, because on our terminal the server would draw its status.
    with (
        tempfile.TemporaryFile() as said,
        started(command, stderr=said, variables=variables) as process,
    ):

        def ended() -> PeerClosed:
            return PeerClosed(
                f"the server of {spec} ended with {process.returncode}: {end_of(said)}"
            )

        while not listener.exists():
            if process.poll() is not None:
                raise ended()
            if time.monotonic() - start > START_SECONDS:
                raise Timeout(f"no server at {spec} after {START_SECONDS:g} s")
            time.sleep(0.01)
        try:
            yield Server(process, time.monotonic() - start)
        except Error as failure:
            if process.poll() is not None:
                raise ended() from failure
            raise


@dataclass(frozen=True)
class Took:
    """The times of a process, and its output to stderr."""

    seconds: float
    cpu_seconds: float
    stderr: str


def timed(
    command: Sequence[str | Path],
    variables: Mapping[str, str] | None = None,
    seconds: float = toolchain.SECONDS,
) -> Took:
    """Runs a command and measures it. By default, uses the variables of `runtimes`."""
    words = " ".join(map(str, command))
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, **(runtimes() if variables is None else variables)},
            # Start a session, as environments do, because Linux may schedule by
            # session.
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
