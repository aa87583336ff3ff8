# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on the measured times of all candidates of kernels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mlbridge_optimizations.polyhedral_tiling.measure import Entry
from mlbridge_optimizations.polyhedral_tiling.networks import Chooser, CostNetwork
from mlbridge_optimizations.polyhedral_tiling.settings import LearningOptions
from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training import costs

LARGEST = 2.5
"""Larger log(time ratios) are cut off: these candidates are bad in any case."""


def train(
    entries: Sequence[Entry],
    options: LearningOptions,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> Chooser:
    """Trains an ensemble."""

    def make(rows: Tensor) -> CostNetwork:
        return CostNetwork(rows, options.hidden)

    given = costs.padded(
        [torch.from_numpy(one.matrix()) for one in entries],
        [torch.tensor(one.ratios).log().clamp(-LARGEST, LARGEST) for one in entries],
    )
    members = costs.train(make, given, options, seed=seed, show=show)
    return Chooser(members, options.margin)


def chosen(chooser: Chooser, entry: Entry) -> int:
    """Returns the index of the candidate that a model chooses."""
    rows = torch.from_numpy(entry.matrix()).unsqueeze(0)
    with torch.no_grad():
        candidates = torch.zeros((*rows.shape[:2], 1), dtype=torch.int32)
        return int(chooser(candidates, rows)["candidate"])
