# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler for the tests of mlbridge.envs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs import CompilerEnv
from programs import BUILD
from stock_llvm import TAG as TAG
from stock_llvm import wait_until_gone as wait_until_gone

PROGRAM = str(BUILD / "tests/training/test-environment")

COUNT: spaces.Space[Any] = spaces.Dict({"count": spaces.Box(0, 99, (), np.int64)})
"""The observations of test-environment."""
COUNT_SPACES: dict[str, Any] = {
    "observation_space": COUNT,
    "action_space": spaces.Discrete(3),
}

SPILLS = [str(BUILD / "examples/environment/spills")]
SPILLS_SPACES: dict[str, Any] = {
    "observation_space": spaces.Box(0, 2, (15,), np.float32),
    "action_space": spaces.Discrete(5),
}


@contextmanager
def compiler_env(spec: str = "pipe", **settings: Any) -> Iterator[CompilerEnv]:
    """Yields an environment whose compiler counts steps, and fails on request."""
    settings = {**COUNT_SPACES, "timeout": 10.0, "reset_timeout": 10.0, **settings}
    command = settings.pop("command", [PROGRAM])
    with closing(CompilerEnv(command, spec, **settings)) as env:
        yield env
