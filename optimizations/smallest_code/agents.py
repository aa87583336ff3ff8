# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The encoder of the policies that are trained in the environment."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mlbridge_optimizations.inlining.network import inputs_of

from .imitation import OF_MODULE

UNIT = math.log1p(100)
"""The logarithm of a typical feature, such as a function's number of instructions."""


class CallEncoder(nn.Module):
    """Scales the features of a call. The features of the whole module are dropped.

    ``space`` is the observation space.
    """

    def __init__(self, space: Any) -> None:
        super().__init__()
        self.names = [name for name in space.spaces if name not in OF_MODULE]
        self.out_features = len(self.names) + 1

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        """Maps features, each float [N, 1], to [N, out_features]."""
        features = torch.cat([observation[name] for name in self.names], dim=1)
        scaled: Tensor = inputs_of(features, self.names) / UNIT
        return scaled
