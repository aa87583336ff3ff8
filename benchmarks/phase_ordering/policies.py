# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The phase-ordering policy of the benchmarks: a network of random weights.

It costs as much as a trained one and is the same in every run. It takes each action
once before repeating any, so that an episode of the space ``oz`` runs the passes of
-Oz, in an order that depends on the module.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.model.export import export_model
from mlbridge_optimizations.phase_ordering.model.model import Task
from mlbridge_optimizations.phase_ordering.model.network import Normalised, Scores

HIDDEN = (128, 128)  # The layers of networks by `mlbridge train`.
_ONCE = 1e3  # The penalty on an action's score each time it was taken.


class RandomPolicy(nn.Module):
    """Random layers after `Normalised`, with a penalty on actions already taken."""

    def __init__(self, widths: Mapping[str, int], choices: int, seed: int) -> None:
        """Takes features of these widths, of which the last are ``actions``."""
        super().__init__()
        self.choices = choices
        generator = torch.Generator().manual_seed(seed)
        sizes = [Normalised(widths, 1).out_features, *HIDDEN, choices]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layer = nn.Linear(before, after)
            # Embeddings have length 1, and modules differ in a part of it.
            spread = 4.0 if not layers else (2 / before) ** 0.5
            with torch.no_grad():
                nn.init.normal_(layer.weight, 0, spread, generator=generator)
                nn.init.zeros_(layer.bias)
            layers += [layer, nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, normalised: Tensor) -> Tensor:
        """[N, features] to [N, actions]."""
        taken = normalised[:, -2 * self.choices : -self.choices]
        scores: Tensor = self.layers(normalised) - _ONCE * taken
        return scores


def write_policy(path: Path, options: EpisodeOptions, seed: int) -> Path:
    """Writes a random policy in a trained model's form; ``actions`` comes last."""
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
