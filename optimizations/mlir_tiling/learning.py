# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on measured times (table.py)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mlbridge_optimizations.mlir_tiling.networks import Chooser, CostNetwork
from mlbridge_optimizations.mlir_tiling.settings import LearningOptions
from mlbridge_optimizations.mlir_tiling.table import Entry
from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training import costs


def train(
    entries: Sequence[Entry],
    options: LearningOptions,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> Chooser:
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
    members = costs.train(
        make, given, options, batch=options.batch, seed=seed, show=show
    )
    return Chooser(members, options.margin)


def chosen(chooser: Chooser, entry: Entry) -> int:
    """Returns the number of the choice that a model makes for a kernel."""
    with torch.no_grad():
        return int(chooser.index(torch.from_numpy(entry.rows)))
