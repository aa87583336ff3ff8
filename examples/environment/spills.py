# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of spills.cpp, as Python sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs import CompilerEnv

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/examples/environment/spills"
REGISTERS = 4

OBSERVATION_SPACE = spaces.Box(0, 2, (3 * (REGISTERS + 1),), np.float32)
"""Of each live range, longest first: its reach, its spill cost, and that by reach."""

ACTION_SPACE: spaces.Discrete[np.int64] = spaces.Discrete(REGISTERS + 1)
"""Which of them is spilled."""

AGENTS = ("int", "float")
"""Where there are two classes of registers."""

Choice = Callable[[Any], int]
"""From an observation to an action."""

HEURISTICS: dict[str, Choice] = {
    "the one that lives longest": lambda ranges: 0,
    "the cheapest": lambda ranges: int(np.argmin(ranges[1::3])),
    "the least cost for its reach": lambda ranges: int(np.argmin(ranges[2::3])),
}
"""What a compiler without a model might do."""


def command(classes: int = 1) -> list[str]:
    """The compiler's command line."""
    return [str(PROGRAM), f"--registers={REGISTERS}", f"--classes={classes}"]


def make(spec: str = "shm", worker: int = 0) -> CompilerEnv:
    """One compiler with one class of registers."""
    return CompilerEnv(
        command(),
        spec,
        observation_space=OBSERVATION_SPACE,
        action_space=ACTION_SPACE,
        worker=worker,
    )


def mean_return(choose: Choice, episodes: int, seed: int) -> float:
    """What a policy gets for functions that it has not seen; -1 is the optimum."""
    env = make()
    try:
        total = 0.0
        observation, _ = env.reset(seed=seed)
        for _ in range(episodes):
            is_over = False
            while not is_over:
                observation, reward, terminated, truncated, info = env.step(
                    choose(observation)
                )
                if truncated:
                    raise RuntimeError(info["error"])
                total += reward
                is_over = terminated
            observation, _ = env.reset()
        return total / episodes
    finally:
        env.close()
