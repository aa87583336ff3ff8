# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs exported files, for tests that compare exports with their frameworks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray


class Guess(gymnasium.Env[Any, Any]):
    """An episode has eight random observations. A reward is the sum of the action."""

    def __init__(self, observations: Any, actions: Any) -> None:
        self.observation_space = observations
        self.action_space = actions

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        observation = self.observation_space.sample()
        return observation, float(np.sum(action)), self._steps >= 8, False, {}


def metadata(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def run(path: Path, features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Maps features by name to outputs by name, each of shape [N, ...]."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(features)), strict=True))
