# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on the measured times of all candidates of kernels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training import costs
from mlbridge_optimizations.training.settings import CostSettings

from .networks import CandidateChooser, CostNetwork
from .table import Entry

LARGEST = 2.5
"""Larger values of log(time ratio) are clipped: these candidates are bad anyway."""


def train(
    entries: Sequence[Entry],
    options: CostSettings,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> CandidateChooser:
    """Trains an ensemble."""

    def make(rows: Tensor) -> CostNetwork:
        return CostNetwork(rows, options.hidden)

    given = costs.padded(
        [torch.from_numpy(one.matrix()) for one in entries],
        [torch.tensor(one.ratios).log().clamp(-LARGEST, LARGEST) for one in entries],
    )
    members = costs.train(make, given, options, seed=seed, show=show)
    return CandidateChooser(members, options.margin, deviations=1.0)
