# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The phase-ordering policy of the benchmarks, a network with random weights.

It costs the same as a trained network and is the same in every run. It chooses each
action once before it repeats an action. An episode in the space ``oz`` therefore runs
the passes of -Oz, in an order that depends on the module.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.model.export import export_model
from mlbridge_optimizations.phase_ordering.model.model import Task
from mlbridge_optimizations.phase_ordering.model.networks import Normalised, Scores

HIDDEN = (128, 128)  # The hidden layers in `mlbridge train`.
_ONCE = 1e3  # Each use of an action lowers its later scores by this number.


class RandomPolicy(nn.Module):
    """Random layers after `Normalised`, with a penalty on actions that were taken."""

    def __init__(self, widths: Mapping[str, int], choices: int, seed: int) -> None:
        """Creates the layers. ``actions`` must be the last feature."""
        super().__init__()
        self.choices = choices
        generator = torch.Generator().manual_seed(seed)
        sizes = [Normalised(widths, 1).out_features, *HIDDEN, choices]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layer = nn.Linear(before, after)
            # Use large weights in the first layer, because embeddings differ little.
            spread = 4.0 if not layers else (2 / before) ** 0.5
            with torch.no_grad():
                nn.init.normal_(layer.weight, 0, spread, generator=generator)
                nn.init.zeros_(layer.bias)
            layers += [layer, nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, normalised: Tensor) -> Tensor:
        """Maps features [N, features] to scores [N, actions]."""
        taken = normalised[:, -2 * self.choices : -self.choices]
        scores: Tensor = self.layers(normalised) - _ONCE * taken
        return scores


def write_policy(path: Path, options: EpisodeOptions, seed: int) -> Path:
    """Writes a random policy with a trained model's format and metadata."""
    normalised = Normalised(options.widths, options.steps)
    policy = RandomPolicy(options.widths, options.choices, seed)
    task = Task(options.space, options.steps, options.stop, tuple(options.widths))
    export_model(
        Scores(normalised, policy, "logits"),
        path,
        options,
        task,
        seed=seed,
        decide="argmax:logits",
    )
    return path
