# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model in PyTorch, and the process that serves it.

python -m mlbridge_benchmarks.loop_distribution.model WEIGHTS SPEC
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mlbridge.server import serve
from mlbridge_optimizations.loop_distribution.learning import features_of
from mlbridge_optimizations.loop_distribution.networks import (
    DistributionChooser,
    DistributionNetwork,
)
from mlbridge_optimizations.loop_distribution.settings import COSTS


def make_model(seed: int) -> DistributionChooser:
    """Returns a model as large as the shipped model, with random weights."""
    torch.manual_seed(seed)
    members = [
        DistributionNetwork(COSTS.hidden, COSTS.steps) for _ in range(COSTS.members)
    ]
    return DistributionChooser(members, 0.0)


class TorchPolicy:
    """Chooses a distribution of a loop."""

    def __init__(self, weights: Path) -> None:
        """Reads the weights that `torch.save` has written."""
        torch.set_num_threads(1)
        self._model = make_model(0)
        self._model.load_state_dict(torch.load(weights))

    def __call__(self, features: Mapping[str, Any]) -> int:
        """Returns the index of the distribution."""
        with torch.inference_mode():
            return int(self._model.index(features_of("distribution", dict(features))))


if __name__ == "__main__":
    serve(TorchPolicy(Path(sys.argv[1])), sys.argv[2])
