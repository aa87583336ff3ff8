# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of mlbridge.envs share: compilers, and whether any is left."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs import CompilerEnv
from programs import status_of

BUILD = Path(__file__).resolve().parents[2] / "build/release"
PROGRAM = str(BUILD / "tests/training/test-environment")

TAG = "MLBRIDGE_TEST_TAG"

COUNT: spaces.Space[Any] = spaces.Dict({"count": spaces.Box(0, 99, (), np.int64)})
"""What test-environment counts."""


def processes(tag: str) -> list[int]:
    """The processes that run with that tag in their environment, zombies too."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{TAG}={tag}".encode() in variables:
            found.append(int(entry.name))
    return found


def wait_until_gone(tag: str, timeout: float = 5.0) -> list[int]:
    """The processes with that tag that are there for so long."""
    until = time.monotonic() + timeout
    while (left := processes(tag)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def zombies() -> list[int]:
    """Children of this process that nobody has reaped."""
    known = {int(p.name): status_of(p.name) for p in Path("/proc").glob("[0-9]*")}
    return [n for n, status in known.items() if status[1:3] == ["Z", str(os.getpid())]]


@contextmanager
def compiler_env(spec: str = "pipe", **settings: Any) -> Iterator[CompilerEnv]:
    """The compiler that fails as it is told, which shows its count."""
    settings = {
        "observation_space": COUNT,
        "action_space": spaces.Discrete(3),
        "timeout": 10.0,
        "reset_timeout": 10.0,
        **settings,
    }
    env = CompilerEnv(settings.pop("command", [PROGRAM]), spec, **settings)
    try:
        yield env
    finally:
        env.close()
