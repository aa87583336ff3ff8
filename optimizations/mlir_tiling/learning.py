# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on measured times.

All choices of each kernel have been measured (table.py), so the loss has two parts: the
error of the estimated times, and the expected time if choices are drawn by their
estimates.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from mlbridge_optimizations.mlir_tiling.networks import Chooser, CostNetwork
from mlbridge_optimizations.mlir_tiling.settings import LearningOptions
from mlbridge_optimizations.mlir_tiling.table import Entry
from mlbridge_optimizations.show import Show, quiet

Example = tuple[Tensor, Tensor]
"""The features of a kernel's choices, float [c, columns], and log(time), float [c]."""


def examples(entries: Sequence[Entry]) -> list[Example]:
    """Returns the kernels about which there is something to decide."""
    return [
        (
            torch.from_numpy(entry.rows),
            torch.tensor(np.log(entry.ratios), dtype=torch.float32),
        )
        for entry in entries
        if len(entry.ratios) > 1
    ]


def loss_of(estimate: Tensor, logs: Tensor, options: LearningOptions) -> Tensor:
    """Returns the loss of one kernel."""
    error = nn.functional.smooth_l1_loss(estimate, logs, beta=0.2)
    chances = torch.softmax(-estimate / options.temperature, dim=0)
    return error + options.expectation * (chances * (logs - logs.min())).sum()


def train_network(
    given: Sequence[Example], options: LearningOptions, seed: int
) -> CostNetwork:
    """Trains one network on all kernels."""
    torch.manual_seed(seed)
    draw = random.Random(seed)
    network = CostNetwork(options.hidden)
    network.normalise(np.concatenate([rows.numpy() for rows, _ in given]))
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    order = list(given)
    batches = -(-len(order) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.epochs * batches
    )
    for _ in range(options.epochs):
        draw.shuffle(order)
        for begin in range(0, len(order), options.batch):
            batch = order[begin : begin + options.batch]
            losses = [loss_of(network(rows), logs, options) for rows, logs in batch]
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return network


def train(
    entries: Sequence[Entry],
    options: LearningOptions,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> Chooser:
    """Trains an ensemble on measured kernels."""
    given = examples(entries)
    members = []
    for number in range(options.members):
        members.append(train_network(given, options, seed + number))
        show(number + 1, options.members)
    return Chooser(members, options.margin)


def chosen(chooser: Chooser, entry: Entry) -> int:
    """Returns the number of the choice that a model makes for a kernel."""
    with torch.no_grad():
        return int(chooser.index(torch.from_numpy(entry.rows)))
