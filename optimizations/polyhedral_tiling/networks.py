# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost model of tiled kernels, and the model that mlbridge-polyhedral asks."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mlbridge.export import FeatureSpec
from mlbridge_optimizations.training.costs import Chooser

FEATURES = 29
"""The features of a candidate (compilers/polyhedral/Features.h)."""


class CostNetwork(nn.Module):
    """Estimates log(time) of candidates relative to the first candidate, float [c].

    The first candidate is the original order. Each candidate is described by its
    features, and by their difference from the first candidate's features.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, rows: Tensor, hidden: int) -> None:
        """`rows` are features, float [n, 29], by which the inputs are normalised."""
        super().__init__()
        self.register_buffer("mean", rows.mean(dim=0))
        self.register_buffer("scale", 1 / rows.std(dim=0).clamp(min=0.05))
        self.layers = nn.Sequential(
            nn.Linear(2 * FEATURES, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 1),
        )
        # Add a linear model, because few kernels suffice to train it.
        self.linear = nn.Linear(2 * FEATURES, 1, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        """`rows` is float [..., c, 29], and the result float [..., c]."""
        given = ((rows - self.mean) * self.scale).clamp(-4, 4)
        both = torch.cat([given, given - given[..., :1, :]], dim=-1)
        found: Tensor = (self.layers(both) + self.linear(both)).squeeze(-1)
        return found - found[..., :1]


class CandidateChooser(Chooser):
    """Returns the index of a candidate, or of the original order."""

    features: ClassVar = (
        FeatureSpec("candidates", "int32", ("c", "m"), low=0, high=512),
        FeatureSpec("candidate_features", "float", ("c", FEATURES), low=-17, high=40),
    )

    def forward(
        self, candidates: Tensor, candidate_features: Tensor
    ) -> dict[str, Tensor]:
        """Returns the index, int64 [1]. The inputs are [1, c, ...]."""
        index = self.index(candidate_features[0])
        # The model must use all its inputs.
        return {"candidate": index + 0 * candidates[0, :1, 0]}
