# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on measured times.

All choices of each kernel have been measured (table.py), so the loss has two parts: the
error of the estimated times, and the expected time if choices are drawn by their
estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mlbridge_optimizations.mlir_tiling.networks import Chooser, CostNetwork
from mlbridge_optimizations.mlir_tiling.settings import LearningOptions
from mlbridge_optimizations.mlir_tiling.table import Entry
from mlbridge_optimizations.show import Show, quiet


@dataclass(frozen=True)
class Examples:
    """Kernels about which there is something to decide, padded to equal sizes.

    Attributes:
        rows: the features of the choices, float [k, c, columns].
        logs: log(time) relative to the first choice, float [k, c].
        given: true where there is a choice, bool [k, c].
    """

    rows: Tensor
    logs: Tensor
    given: Tensor

    def __getitem__(self, chosen: Tensor) -> "Examples":
        return Examples(self.rows[chosen], self.logs[chosen], self.given[chosen])


def examples(entries: Sequence[Entry]) -> Examples:
    """Returns the kernels that have several choices."""
    several = [entry for entry in entries if len(entry.ratios) > 1]
    logs = [torch.tensor(entry.ratios).log() for entry in several]
    return Examples(
        pad_sequence([torch.from_numpy(one.rows) for one in several], True),
        pad_sequence(logs, True),
        pad_sequence([torch.ones(len(one), dtype=torch.bool) for one in logs], True),
    )


def loss_of(estimate: Tensor, batch: Examples, options: LearningOptions) -> Tensor:
    """Returns the mean loss of a batch's kernels. `estimate` is float [k, c]."""
    error = nn.functional.smooth_l1_loss(
        estimate, batch.logs, beta=0.2, reduction="none"
    )
    errors = (error * batch.given).sum(dim=1) / batch.given.sum(dim=1)
    scores = (-estimate / options.temperature).masked_fill(~batch.given, -torch.inf)
    lost = batch.logs - batch.logs.amin(dim=1, keepdim=True)
    expected = (torch.softmax(scores, dim=1) * lost).sum(dim=1)
    return (errors + options.expectation * expected).mean()


def train_network(given: Examples, options: LearningOptions, seed: int) -> CostNetwork:
    """Trains one network on all kernels."""
    torch.manual_seed(seed)
    network = CostNetwork(options.hidden)
    network.normalise(given.rows[given.given])
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    count = len(given.rows)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.epochs * -(-count // options.batch)
    )
    for _ in range(options.epochs):
        for chosen in torch.split(torch.randperm(count), options.batch):
            batch = given[chosen]
            loss = loss_of(network(batch.rows), batch, options)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
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
