# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests start and run: programs, commands, served policies."""

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

from mlbridge import (
    Batched,
    Features,
    ModelRunner,
    Policy,
    Serving,
    create_model_runner,
    serving,
)
from mlbridge.cli import app

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds that anything may take, on a machine that others use too."""

IS_FULL = os.environ.get("MLBRIDGE_TEST_FULL") == "1"
"""Whether the long tests are to run, too, and all of those that take a sample."""
FULL = pytest.mark.skipif(not IS_FULL, reason="takes long: MLBRIDGE_TEST_FULL=1")
needs_grpc = pytest.mark.skipif(
    not find_spec("mlbridge._grpc"), reason="this build has no gRPC"
)
SCHEMES = ["pipe", "shm", pytest.param("grpc+unix", marks=needs_grpc)]

TRANSPORTS = ["pipe:{}", "shm:{}"]
"""Specs of all that there are, with the place for a name."""
if find_spec("mlbridge._grpc"):
    TRANSPORTS += ["grpc+unix:{}", "grpc+unix:{}?call=unary"]

CLI = "from mlbridge.cli import main; main()"
"""The installed command `mlbridge`."""


class Started(subprocess.Popen[str]):
    """A program that runs beside the test; use it in a ``with`` statement."""

    stdout: IO[str]
    stderr: IO[str]

    def __init__(self, program: str, *arguments: str | Path, **more: Any) -> None:
        pipe = subprocess.PIPE
        options = {"stdout": pipe, "stderr": pipe, "text": True, **more}
        super().__init__([sys.executable, "-c", program, *arguments], **options)


def run_python(
    program: str,
    *arguments: str | Path,
    check: bool = False,
    timeout: float = 60,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """What a program printed, and its exit status, which `check` says has to be 0."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, **more
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def shell_script(path: Path, text: str) -> Path:
    """A program of a few lines."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run_program(
    command: Sequence[str | Path], **more: Any
) -> subprocess.CompletedProcess[str]:
    """What a program says, and its exit status; it has a minute, if not told more."""
    options = {"capture_output": True, "text": True, "timeout": 60, **more}
    return subprocess.run(command, **options)


def at(spec: str, name: str, **options: str) -> str:
    """The spec of a name, with more options."""
    spec = spec.format(name)
    for key, value in options.items():
        spec += f"{'&' if '?' in spec else '?'}{key}={value}"
    return spec


def place(spec: str, name: str) -> str:
    """Where the model is, which has none of the compiler's options."""
    return spec.format(name).partition("?")[0]


def status_of(pid: int | str) -> list[str]:
    """A process's program, state, parent and group; nothing if it is gone."""
    try:
        program, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    except OSError:
        return []
    return [program.partition("(")[2], *rest.split()[:3]]


def in_threads(work: Callable[[int], object], count: int) -> None:
    """Does so much work at the same time, each in a thread of its own."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def reply_of(spec: str, *request: Any, **more: Any) -> Any:
    """What a runner of its own answers to one request."""
    with create_model_runner(spec) as runner:
        return runner.evaluate(*request, **more)


def run_cli(*arguments: object, status: int = 0) -> str:
    """What `mlbridge` prints in this process; what it raises is raised."""
    words = [str(argument) for argument in arguments]
    columns = {"COLUMNS": "200"}
    result = CliRunner().invoke(app, words, catch_exceptions=False, env=columns)
    assert result.exit_code == status, result.output
    return result.output


def until(attempt: Callable[[], T | None], what: str = "it has not come about") -> T:
    """What the attempt gives, as soon as that is true."""
    deadline = time.monotonic() + PATIENCE
    while not (result := attempt()):
        assert time.monotonic() < deadline, what
        time.sleep(0.001)
    return result


@contextmanager
def asked(
    policy: Policy | Batched, name: str, query: str = "", **options: Any
) -> Iterator[tuple[Serving, ModelRunner]]:
    """A policy that is served at ``pipe:NAME``, and a runner that asks it."""
    with (
        serving(policy, f"pipe:{name}{query}", **options) as served,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
    ):
        yield served, runner


def raising(error: Callable[[Features], BaseException]) -> Policy:
    """A policy that fails so on each request."""

    def policy(features: Features) -> Any:
        raise error(features)

    return policy
