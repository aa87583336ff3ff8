# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost model of loop nests, and the model that a compiler asks."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mlbridge.export import FeatureSpec
from mlbridge_optimizations.training.costs import Chooser

from .table import COLUMNS


class CostNetwork(nn.Module):
    """Estimates log(time) of choices relative to the first choice.

    Each choice is described by its columns, and by their difference from the columns of
    the first choice, which leaves the nest as it is.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(COLUMNS))
        self.register_buffer("scale", torch.ones(COLUMNS))
        self.layers = nn.Sequential(
            nn.Linear(2 * COLUMNS, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def normalise(self, rows: Tensor) -> None:
        """Sets the mean and the scale of each column from float [n, columns]."""
        self.mean.copy_(rows.mean(dim=0))
        self.scale.copy_(1 / rows.std(dim=0).clamp(min=0.05))

    def forward(self, rows: Tensor) -> Tensor:
        """Maps float [..., c, columns] to float [..., c]."""
        given = ((rows - self.mean) * self.scale).clamp(-5, 5)
        both = torch.cat([given, given - given[..., :1, :]], dim=-1)
        found: Tensor = self.layers(both).squeeze(-1)
        return found - found[..., :1]


class TilingChooser(Chooser):
    """Chooses a tiling, or leaves the nest as it is."""

    features: ClassVar = (
        FeatureSpec("choices", "int64", ("c", "m"), low=0, high=128),
        FeatureSpec("choice_features", "float", ("c", COLUMNS), low=-8.0, high=24.0),
    )

    def forward(self, choices: Tensor, choice_features: Tensor) -> dict[str, Tensor]:
        """Returns a row of `choices`, int64 [1, m]. The inputs are [1, c, ...]."""
        chosen = self.index(choice_features[0])
        return {"tiling": choices[0].index_select(0, chosen)}
