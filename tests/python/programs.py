# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers that run programs, commands and served policies."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, TypeVar

import pytest
from typer.testing import CliRunner

from mlbridge import Features, ModelRunner, Policy, Serving, serving
from mlbridge.batching import Batched
from mlbridge.cli import app

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"

PATIENCE = 20.0
"""The longest wait in seconds. It is long, because the machine may be busy."""

STACK = """
template <typename T> struct Stack {
  T Items[16];
  int Count = 0;
  void push(T Item) { if (Count < 16) Items[Count++] = Item; }
  T sum() const { T S{}; for (int I = 0; I < Count; ++I) S += Items[I]; return S; }
};
"""
"""A class template in C++, whose functions several files of a program emit."""

IS_FULL = os.environ.get("MLBRIDGE_TEST_FULL") == "1"
"""True if long tests run, and every test runs all its cases."""
FULL = pytest.mark.skipif(not IS_FULL, reason="takes long: MLBRIDGE_TEST_FULL=1")
needs_grpc = pytest.mark.skipif(
    not find_spec("mlbridge._grpc"), reason="this build has no gRPC"
)
SCHEMES = ["pipe", "shm", pytest.param("grpc+unix", marks=needs_grpc)]

TRANSPORTS = ["pipe:{}", "shm:{}"]
"""The spec of each transport in this build, with a placeholder for the name."""
if find_spec("mlbridge._grpc"):
    TRANSPORTS += ["grpc+unix:{}", "grpc+unix:{}?call=unary"]

CLI = "from mlbridge.cli import main; main()"
"""The program that the command `mlbridge` runs."""


class Started(subprocess.Popen[str]):
    """A Python program that runs beside the test, for a ``with`` statement."""

    stdout: IO[str]
    stderr: IO[str]

    def __init__(self, program: str, *arguments: str | Path, **more: Any) -> None:
        pipe = subprocess.PIPE
        options = {"stdout": pipe, "stderr": pipe, "text": True, **more}
        super().__init__([sys.executable, "-c", program, *arguments], **options)


def run_python(
    program: str, *arguments: str | Path, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a Python program as `run_program` does."""
    return run_program([sys.executable, "-c", program, *arguments], **more)


def run_program(
    command: Sequence[str | Path], *, check: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program and captures its output. `check` expects exit status 0.

    The time limit is a minute, unless `timeout` has another number of seconds.
    """
    options = {"capture_output": True, "text": True, "timeout": 60, **more}
    done = subprocess.run(command, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


def shell_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def at(spec: str, name: str, **options: str) -> str:
    """Returns the spec for a name, with additional options."""
    spec = spec.format(name)
    for key, value in options.items():
        spec += f"{'&' if '?' in spec else '?'}{key}={value}"
    return spec


def place(spec: str, name: str) -> str:
    """Returns the spec of a server, without the compiler's options."""
    return spec.format(name).partition("?")[0]


def status_of(pid: int | str) -> list[str]:
    """Returns a process's program, state, parent and group, or [] if it was reaped."""
    try:
        program, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    except OSError:
        return []
    return [program.partition("(")[2], *rest.split()[:3]]


def in_threads(work: Callable[[int], object], count: int) -> None:
    """Calls `work` with 0 to `count` - 1, each in its own thread at the same time."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def reply_of(spec: str, *request: Any, **more: Any) -> Any:
    """Returns the reply to one request through a new runner."""
    with ModelRunner(spec) as runner:
        return runner.evaluate(*request, **more)


def run_cli(*arguments: object, status: int = 0) -> str:
    """Returns the output of `mlbridge`, run in this process. Exceptions propagate."""
    result = CliRunner().invoke(
        app, list(map(str, arguments)), catch_exceptions=False, env={"COLUMNS": "200"}
    )
    assert result.exit_code == status, result.output
    return result.output


def until(
    attempt: Callable[[], T | None], what: str = "timed out", seconds: float = PATIENCE
) -> T:
    """Calls `attempt` until it returns a true value, and returns this value."""
    deadline = time.monotonic() + seconds
    while not (result := attempt()):
        assert time.monotonic() < deadline, what
        time.sleep(0.001)
    return result


def running(text: str) -> list[int]:
    """Returns the IDs of the processes whose command line contains a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes()
        except OSError:
            continue
        if text.encode() in line:
            found.append(int(process.parent.name))
    return found


@contextmanager
def asked(
    policy: Policy | Batched, name: str, query: str = "", **options: Any
) -> Iterator[tuple[Serving, ModelRunner]]:
    """Serves a policy at ``pipe:NAME``. Yields the server and a runner for it."""
    with (
        serving(policy, f"pipe:{name}{query}", **options) as served,
        ModelRunner(f"pipe:{name}?timeout=20s") as runner,
    ):
        yield served, runner


def raising(error: Callable[[Features], BaseException]) -> Policy:
    """Returns a policy that raises an error on every request."""

    def policy(features: Features) -> Any:
        raise error(features)

    return policy


@contextmanager
def asked_at(
    policy: Policy | Batched, server: str, compiler: str, **options: Any
) -> Iterator[tuple[Serving, ModelRunner]]:
    """Serves a policy at `server`. Yields the server and a runner for `compiler`."""
    with (
        serving(policy, server, **options) as served,
        ModelRunner(compiler) as runner,
    ):
        yield served, runner
