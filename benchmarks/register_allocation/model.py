# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model process of ``mlbridge bench register-allocation``.

    python -m mlbridge_benchmarks.register_allocation.model SPEC RUNTIME CORE MODELS

Serves the four agents of a dialogue, whose ONNX files are in the folder MODELS. RUNTIME
is ``onnx`` for ONNX Runtime or ``torch`` for PyTorch, with the same weights. The
process runs on one core.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from mlbridge.onnx import load_onnx
from mlbridge.server import serve
from mlbridge.types import Features
from mlbridge_optimizations.register_allocation.optimization import AGENTS


class TorchAgent:
    """An agent of `DialogueNetwork` in PyTorch."""

    def __init__(self, agent: str, file: Path) -> None:
        """Reads the weights from the ONNX file."""
        self._scores: Callable[[dict[str, Tensor]], Tensor] = getattr(self, agent)
        self._weights = {
            part.name: torch.tensor(numpy_helper.to_array(part))
            for part in onnx.load(file).graph.initializer
        }

    def node(self, features: dict[str, Tensor]) -> Tensor:
        """Scores live ranges."""
        return (features["ranges"] @ self._weights["node_linear"]).flatten()

    def task(self, features: dict[str, Tensor]) -> Tensor:
        """Scores a register and a split."""
        both = torch.cat([features["range"], features["colours"].amax(0)])
        split = both @ self._weights["task_linear"] + self._weights["task_bias"]
        return torch.cat([torch.zeros(1), split])

    def colour(self, features: dict[str, Tensor]) -> Tensor:
        """Scores the registers, a spill, and leaving the range to greedy."""
        colours = (features["colours"] @ self._weights["colour_linear"]).flatten()
        others = features["range"] @ self._weights["others_linear"]
        return torch.cat([colours, others + self._weights["others_bias"]])

    def split(self, features: dict[str, Tensor]) -> Tensor:
        """Scores the places of a split."""
        return (features["points"] @ self._weights["split_linear"]).flatten()

    def __call__(self, features: Features) -> int:
        """Returns the legal choice with the highest score."""
        with torch.inference_mode():
            tensors = {
                name: torch.from_numpy(value.copy())
                for name, value in features.items()
                if not isinstance(value, str)
            }
            illegal = tensors["action_mask"] <= 0
            scores = self._scores(tensors).masked_fill(illegal, -1e9)
            return int(scores.argmax())


def _onnx_agent(file: Path) -> Callable[[Features], Any]:
    policy = load_onnx(file)
    return lambda features: policy([features])[0]


def main(spec: str, runtime: str, core: str, models: str) -> None:
    """Serves the agents until SIGTERM."""
    os.sched_setaffinity(0, {int(core)})
    torch.set_num_threads(1)
    files = {agent: Path(models, f"{agent}.onnx") for agent in AGENTS}
    agents: dict[str, Callable[[Features], Any]] = {
        agent: TorchAgent(agent, file) if runtime == "torch" else _onnx_agent(file)
        for agent, file in files.items()
    }
    serve(lambda features: agents[features["_agent"]](features), spec)


if __name__ == "__main__":
    main(*sys.argv[1:])
