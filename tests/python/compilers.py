# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for the tests of mlbridge.envs: a compiler, and checks for leaks."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from mlbridge.envs import CompilerEnv
from programs import BUILD, status_of
from stock_llvm import children

PROGRAM = str(BUILD / "tests/training/test-environment")

TAG = "MLBRIDGE_TEST_TAG"

COUNT: spaces.Space[Any] = spaces.Dict({"count": spaces.Box(0, 99, (), np.int64)})
"""The observations of test-environment."""
COUNT_SPACES: dict[str, Any] = {
    "observation_space": COUNT,
    "action_space": spaces.Discrete(3),
}


@pytest.fixture
def tag(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks the processes that a test starts; none, and no file, may remain."""
    value = f"{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(TAG, value)
    with tempfile.TemporaryDirectory(prefix="mlb") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield value
        assert wait_until_gone(value) == []
        assert [pid for pid in children() if status_of(pid)[1:2] == ["Z"]] == []
        assert list(Path(folder).iterdir()) == []


def processes(tag: str) -> list[int]:
    """The processes with that tag in their environment, including zombies."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # A process may end, or belong to another user.
        with suppress(OSError):
            variables = (entry / "environ").read_bytes().split(b"\0")
            if f"{TAG}={tag}".encode() in variables:
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def wait_until_gone(tag: str, timeout: float = 5.0) -> list[int]:
    """Waits for the processes with that tag to end; returns those that have not."""
    until = time.monotonic() + timeout
    while (left := processes(tag)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


@contextmanager
def compiler_env(spec: str = "pipe", **settings: Any) -> Iterator[CompilerEnv]:
    """An environment whose compiler counts its steps and fails when told to."""
    settings = {**COUNT_SPACES, "timeout": 10.0, "reset_timeout": 10.0, **settings}
    command = settings.pop("command", [PROGRAM])
    with closing(CompilerEnv(command, spec, **settings)) as env:
        yield env
