# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on measured times (table.py)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training import costs
from mlbridge_optimizations.training.settings import CostSettings

from .networks import CostNetwork, TilingChooser
from .table import Entry


def train(
    entries: Sequence[Entry],
    options: CostSettings,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> TilingChooser:
    """Trains an ensemble on the measured kernels that have several choices."""

    def make(rows: Tensor) -> CostNetwork:
        network = CostNetwork(options.hidden)
        network.normalise(rows)
        return network

    several = [entry for entry in entries if len(entry.ratios) > 1]
    given = costs.padded(
        [torch.from_numpy(one.rows) for one in several],
        [torch.tensor(one.ratios).log() for one in several],
    )
    members = costs.train(make, given, options, seed=seed, show=show)
    return TilingChooser(members, options.margin)
