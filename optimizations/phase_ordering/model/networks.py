# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first layer of all networks of phase ordering, which normalises features.

Most features are counts of very different sizes. Each count becomes two inputs: its
logarithm and its share of the sum. The layer is part of the exported network, so the
compiler sends features without normalisation. It has no trained parameters.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from mlbridge.errors import InvalidArgument

_COUNTS = ("histogram", "counts")


class Normalised(nn.Module):
    """Normalises a row of raw features."""

    def __init__(self, widths: Mapping[str, int], steps: int) -> None:
        """Stores the widths of the features, and the maximum number of steps."""
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
        """Maps a tensor [N, in_features] to [N, out_features]."""
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


class Once(Normalised):
    """Normalises a row, and makes actions illegal that have been taken.

    The feature ``actions`` only determines which actions are legal.
    """

    def __init__(self, widths: Mapping[str, int], steps: int) -> None:
        super().__init__({n: w for n, w in widths.items() if n != "actions"}, steps)
        *_, last = widths
        if last != "actions" or steps > widths["actions"] // 2:
            raise InvalidArgument(
                f"each action at most once: expected the feature 'actions' and at least"
                f" {steps} actions, one for each step, found the features"
                f" {', '.join(widths)} and {widths.get('actions', 0) // 2} actions"
            )
        self.choices = widths["actions"] // 2

    def forward(self, row: Tensor) -> Tensor:
        """Maps a tensor [N, features] to [N, out_features]."""
        return super().forward(row[:, : self.in_features])

    def legal(self, row: Tensor) -> Tensor:
        """Maps a tensor [N, features] to the legal actions, [N, actions]."""
        taken = row[:, self.in_features : self.in_features + self.choices]
        return taken < 1


class Scores(nn.Module):
    """A normalisation layer and then a trained network, for export."""

    def __init__(self, normalised: Normalised, network: nn.Module, output: str) -> None:
        super().__init__()
        self.normalised = normalised
        self.network = network
        self.output = output
        self.in_features = normalised.in_features

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """Maps a tensor [N, in_features] to scores [N, actions]."""
        return {self.output: self.network(self.normalised(row))}
