# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every network of phase ordering begins with: normalisation, in the network.

Features are counts of very different sizes, and modules are small and large. So each
count is seen twice: how large it is, as its logarithm, and what share it has.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_COUNTS = ("histogram", "counts")


class Normalised(nn.Module):
    """A row of features as the compiler sends them, made fit for a network."""

    def __init__(self, widths: Mapping[str, int], steps: int) -> None:
        """For features of those widths, in their order, and so many steps at most."""
        super().__init__()
        self.names = list(widths)
        self.widths = list(widths.values())
        self.steps = steps
        added = {"embedding": 1, "step": 0, "actions": 0}
        self.out_features = sum(
            2 * width if name in _COUNTS else width + added[name]
            for name, width in widths.items()
        )

    def forward(self, row: Tensor) -> Tensor:
        """[N, widths] to [N, out_features]."""
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


class Encoder(nn.Module):
    """Normalisation, and layers after it; what RL's heads are put on."""

    def __init__(
        self, widths: Mapping[str, int], steps: int, hidden: tuple[int, ...]
    ) -> None:
        """For features as `Normalised` takes them."""
        super().__init__()
        normalised = Normalised(widths, steps)
        layers: list[nn.Module] = [normalised]
        size = normalised.out_features
        for width in hidden:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.layers = nn.Sequential(*layers)
        self.out_features = size

    def forward(self, row: Tensor) -> Tensor:
        """[N, widths] to [N, out_features]."""
        found: Tensor = self.layers(row)
        return found
