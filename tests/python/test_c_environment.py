# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler that is written in C, driven by a trainer: tests/capi/environment.c."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from mlbridge.envs import CompilerEnv

PROGRAM = (
    Path(__file__).resolve().parents[2] / "build/release/tests/capi/capi-environment"
)


@pytest.mark.parametrize("spec", ["pipe", "shm", "grpc"])
def test_episodes_and_failures(spec: str) -> None:
    env = CompilerEnv(
        [str(PROGRAM)],
        spec,
        observation_space=spaces.Dict({"left": spaces.Box(0, 3, (), np.int32)}),
        action_space=spaces.Discrete(5),
        timeout=30.0,
        reset_timeout=30.0,
    )
    try:
        for _ in range(2):
            observation, _ = env.reset()
            assert observation["left"] == 3
            seen = [env.step(action)[:3] for action in (2, 4, 1)]
            assert [int(o["left"]) for o, _, _ in seen] == [2, 1, 0]
            assert [reward for _, reward, _ in seen] == [2.0, 4.0, 1.0]
            assert [done for _, _, done in seen] == [False, False, True]
        env.reset()
        *_, truncated, info = env.step(0)
        assert truncated
        assert info["error"] == "Model: no loop unrolls so far"
    finally:
        env.close()
