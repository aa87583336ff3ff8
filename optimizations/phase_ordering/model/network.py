# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every network of phase ordering begins with: normalisation.

Features are counts of very different sizes, and modules are small and large. So each
count is seen twice: how large it is, as its logarithm, and what share it has. Nothing
of it is learned. It is a part of the network, in the exported file as well, so that a
compiler sends its features as they are.
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
        self.in_features = sum(self.widths)
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


class Scores(nn.Module):
    """Normalisation and a trained network after it: what is exported."""

    def __init__(self, normalised: Normalised, network: nn.Module, output: str) -> None:
        """The network takes what `Normalised` makes; its output gets that name."""
        super().__init__()
        self.normalised = normalised
        self.network = network
        self.output = output
        self.in_features = normalised.in_features

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """[N, widths] to the scores of actions."""
        return {self.output: self.network(self.normalised(row))}
