# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The network that learns to inline, in PyTorch.

LLVM's features are counts with heavy tails, so each is put on a logarithmic scale and
standardised; those that never change in the training set are dropped.

One input is derived: the margin `max(1, threshold) - cost_estimate`, in instructions,
squashed. LLVM's heuristic inlines where it is positive, so it says most of what there
is to imitate, and on a logarithmic scale one instruction more or less is hardly seen.
models/inlining-imitation/README.md says how far the network comes without it.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

# What LLVM's inliner takes one instruction to cost.
INSTRUCTION_COST = 5


class InliningNetwork(nn.Module):
    """LLVM's features in, the logit of inlining out.

    Scaling is part of the network: whoever has its state and `features` has all.

    Attributes:
        features: The names of the features, in the order of the input's columns.
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
        # 0 drops an input.
        self.register_buffer("scale", torch.ones(inputs))
        widths = (inputs, *hidden)
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def inputs(self, features: Tensor) -> Tensor:
        """The features, scaled, and the derived input: float[n, d] to [n, d + 1]."""
        scaled = torch.sign(features) * torch.log1p(torch.abs(features))
        if not self.derived:
            return scaled
        cost = features[:, self.features.index("cost_estimate")]
        threshold = features[:, self.features.index("threshold")]
        margin = torch.tanh((threshold.clamp(min=1) - cost) / INSTRUCTION_COST)
        return torch.cat([scaled, margin.unsqueeze(1)], dim=1)

    def fit_scaling(self, features: Tensor) -> None:
        """Has every input of these features be of mean 0 and variance 1, or dropped."""
        inputs = self.inputs(features)
        deviation = inputs.std(dim=0)
        self.mean.copy_(inputs.mean(dim=0))
        self.scale.copy_(torch.where(deviation > 0, 1 / deviation, 0))

    def forward(self, features: Tensor) -> Tensor:
        """float[n, d] to float[n]."""
        scaled = (self.inputs(features) - self.mean) * self.scale
        logits: Tensor = self.layers(scaled)
        return logits.squeeze(1)

    def folded(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """What is left of scaling when the network is asked, not trained.

        Inputs without a scale are dropped, and the rest of the scaling becomes part of
        the first layer: (x - mean) * scale @ W + b.

        Returns:
            The indices of the inputs that are kept, int64[k], and each layer's weights,
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
        """The layers that have weights, from the inputs to the logit."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def save(self, path: Path) -> None:
        """Writes the network and all that it takes to use it to a file."""
        torch.save(
            {
                "features": list(self.features),
                "hidden": [layer.out_features for layer in self.linear_layers()[:-1]],
                "derived": self.derived,
                "state": self.state_dict(),
            },
            path,
        )

    @classmethod
    def load(cls, path: Path) -> "InliningNetwork":
        """Reads what save() wrote."""
        saved = torch.load(path, weights_only=True)
        network = cls(saved["features"], saved["hidden"], derived=saved["derived"])
        network.load_state_dict(saved["state"])
        return network.eval()
