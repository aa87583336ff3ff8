# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PyTorch network that learns to inline.

LLVM's features are counts with heavy tails, so each is scaled logarithmically and
standardised. Features that are constant in the training set are dropped.

One input is derived. It is tanh of the margin `max(1, threshold) - cost_estimate` in
instructions. LLVM's heuristic inlines if the margin is positive, so the margin predicts
most decisions. A logarithmic scale would hide a difference of one instruction.
models/inlining-imitation/README.md has the accuracy without this input.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

INSTRUCTION_COST = 5  # The cost of one instruction in LLVM's inliner.


def inputs_of(features: Tensor, names: Sequence[str]) -> Tensor:
    """Scales float[n, d] logarithmically, and adds the derived input.

    Returns float[n, d + 1]. `names` are the names of the columns.
    """
    cost = features[:, names.index("cost_estimate")]
    threshold = features[:, names.index("threshold")]
    margin = torch.tanh((threshold.clamp(min=1) - cost) / INSTRUCTION_COST)
    return torch.cat([_scaled(features), margin.unsqueeze(1)], dim=1)


def _scaled(features: Tensor) -> Tensor:
    return torch.sign(features) * torch.log1p(torch.abs(features))


class InliningNetwork(nn.Module):
    """Maps LLVM's features to the logit of inlining. Scaling is part of the network.

    ``features`` are the names of the input columns.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        features: Sequence[str],
        hidden: Sequence[int],
        *,
        derived: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.features = tuple(features)
        self.derived = derived
        inputs = len(features) + derived
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))  # Scale 0 drops the input.
        widths = (inputs, *hidden)
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def inputs(self, features: Tensor) -> Tensor:
        """Scales float[n, d] and adds the derived input. Returns float[n, d + 1]."""
        if not self.derived:
            return _scaled(features)
        return inputs_of(features, self.features)

    def fit_scaling(self, features: Tensor) -> None:
        """Fits the scaling, so that these features get mean 0 and variance 1."""
        inputs = self.inputs(features)
        deviation = inputs.std(dim=0)
        self.mean.copy_(inputs.mean(dim=0))
        self.scale.copy_(torch.where(deviation > 0, 1 / deviation, 0))

    def forward(self, features: Tensor) -> Tensor:
        """Maps float[n, d] features to float[n] logits."""
        scaled = (self.inputs(features) - self.mean) * self.scale
        logits: Tensor = self.layers(scaled)
        return logits.squeeze(1)

    def folded(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Folds the scaling into the first layer: (x - mean) * scale @ W + b.

        Returns the indices of the remaining inputs, int64[k], and each layer's weights,
        float[inputs, outputs], and biases, float[outputs].
        """
        kept = torch.nonzero(self.scale).flatten()
        (first, bias), *others = [
            (layer.weight.detach().T, layer.bias.detach())
            for layer in self.linear_layers()
        ]
        weight = self.scale[kept, None] * first[kept]
        bias = bias - self.mean[kept] @ weight
        return kept, [(weight, bias), *others]

    def linear_layers(self) -> list[nn.Linear]:
        """Returns the layers with weights, from the inputs to the logit."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def save(self, path: Path) -> None:
        """Writes the network and the names of its features to a file."""
        hidden = [layer.out_features for layer in self.linear_layers()[:-1]]
        about: dict[str, Any] = {"features": [*self.features], "hidden": hidden}
        state = self.state_dict()
        torch.save({**about, "derived": self.derived, "state": state}, path)

    @classmethod
    def load(cls, path: Path) -> "InliningNetwork":
        """Reads a file that `save` has written."""
        saved = torch.load(path, weights_only=True)
        network = cls(saved["features"], saved["hidden"], derived=saved["derived"])
        network.load_state_dict(saved["state"])
        return network.eval()
