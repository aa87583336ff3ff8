# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first part of every network of phase ordering: normalisation.

Features are counts of very different sizes. Each count becomes two inputs: its
logarithm and its share. Normalisation has no parameters. It is part of the exported
network, so a compiler sends raw features.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_COUNTS = ("histogram", "counts")


class Normalised(nn.Module):
    """Normalises a row of raw features."""

    def __init__(self, widths: Mapping[str, int], steps: int) -> None:
        """Takes the features' widths in order, and the most steps of an episode."""
        super().__init__()
        self.names = list(widths)
        self.widths = list(widths.values())
        self.steps = steps
        self.in_features = sum(self.widths)
        added = {"embedding": 1, "step": 0, "actions": 0}
        self.out_features = sum(
            2 * width if name in _COUNTS else width + added[name]
            for name, width in widths.items()
        )

    def forward(self, row: Tensor) -> Tensor:
        """From [N, widths] to [N, out_features]."""
        parts = torch.split(row, self.widths, dim=1)
        made: list[Tensor] = []
        for name, part in zip(self.names, parts, strict=True):
            if name in _COUNTS:
                counts = torch.relu(part)
                share = counts / (counts.sum(dim=1, keepdim=True) + 1.0)
                made += [torch.log1p(counts) / 8.0, torch.sqrt(share)]
            elif name == "embedding":
                length = torch.sqrt((part * part).sum(dim=1, keepdim=True) + 1e-12)
                made += [part / length, torch.log1p(length) / 8.0]
            elif name == "step":
                made.append(part / self.steps)
            else:
                made.append(torch.clamp(part, 0.0, 4.0) / 2.0)
        return torch.cat(made, dim=1)


class Scores(nn.Module):
    """Normalisation and a trained network behind it, for export."""

    def __init__(self, normalised: Normalised, network: nn.Module, output: str) -> None:
        super().__init__()
        self.normalised = normalised
        self.network = network
        self.output = output
        self.in_features = normalised.in_features

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """From [N, widths] to scores of actions."""
        return {self.output: self.network(self.normalised(row))}
