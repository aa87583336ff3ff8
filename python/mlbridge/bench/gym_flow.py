# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A policy that drives the compiler from outside, through Gymnasium.

As the paper's figure 6: what a policy costs that stays in the environment it was
trained in, against the same policy inside the compiler.
"""

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import gymnasium

import mlbridge.envs
from mlbridge.bench.compile_time import STOCK, Compiled
from mlbridge.bench.phase_ordering import Deployed, cpu_seconds_of, own_cpu_seconds
from mlbridge.errors import ModelError
from mlbridge.onnx import load_onnx

GYM, REWARDED = "Gymnasium", "Gymnasium, rewards"
REWARDS = {GYM: "none", REWARDED: "text-size:10"}
"""Who only wants the result needs no reward; who trains makes an object each step."""

FLOWS = (GYM, REWARDED, "onnx", "aot", STOCK)


class GymFlow(AbstractContextManager["GymFlow"]):
    """One environment for all modules, and the model in this process."""

    def __init__(self, deployed: Deployed, modules: list[Path], reward: str) -> None:
        """Starts nothing yet; the modules are those that will come."""
        self._deployed = deployed
        told: dict[str, Any] = deployed.environment("shm", reward)
        self._told = {**told, "modules": modules}
        self.start_seconds = 0.0

    def __enter__(self) -> "GymFlow":
        # An import for what it does: it tells Gymnasium of the environment.
        assert mlbridge.envs.PhaseOrderingEnv is not None
        start = time.perf_counter()
        self._policy = load_onnx(self._deployed.model)
        self._env = gymnasium.make("mlbridge/PhaseOrdering-v0", **self._told)
        self._compiler: Any = self._env.unwrapped
        self._env.reset(seed=0)
        self.start_seconds = time.perf_counter() - start
        return self

    def __exit__(self, *_: object) -> None:
        self._compiler.close()

    def compile(self, module: Path, to: Path) -> Compiled:
        """An episode; the compiler writes the object at its end."""
        start, before = time.perf_counter(), self._cpu_seconds()
        asked = {"module": str(module), "output": str(to)}
        observation, info = self._env.reset(options=asked)
        over = False
        while not over:
            if not isinstance(observation, dict):
                observation = {self._deployed.observation[0]: observation}
            (answer,) = self._policy([observation])
            observation, _, over, truncated, info = self._env.step(int(answer))
            if truncated:
                raise ModelError(f"{module}: {info['error']}")
        seconds = time.perf_counter() - start
        names = self._deployed.names(info["sequence"])
        return Compiled(seconds, self._cpu_seconds() - before, names)

    def _cpu_seconds(self) -> float:
        """Of this process and of the compiler."""
        return own_cpu_seconds() + cpu_seconds_of(self._compiler.pid)
