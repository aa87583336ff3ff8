# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the cost model on the measured times of all candidates of kernels.

The loss has two parts: the error of the estimated times, and the expected time if
candidates are drawn by their estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mlbridge_optimizations.polyhedral_tiling.measure import Entry
from mlbridge_optimizations.polyhedral_tiling.networks import Chooser, CostNetwork
from mlbridge_optimizations.polyhedral_tiling.settings import LearningOptions
from mlbridge_optimizations.show import Show, quiet

BATCH = 16  # Kernels.
LARGEST = 2.5
"""Larger log(time ratios) are cut off: these candidates are bad in any case."""


@dataclass(frozen=True)
class Examples:
    """Kernels, padded to the same number of candidates.

    Attributes:
        rows: features, float [k, c, 29].
        logs: log(time / time of the original order), float [k, c].
        mask: whether a candidate exists, bool [k, c].
    """

    rows: Tensor
    logs: Tensor
    mask: Tensor


def examples(entries: Sequence[Entry]) -> Examples:
    """Returns the kernels as tensors."""
    rows = [torch.from_numpy(one.matrix()) for one in entries]
    logs = [torch.tensor(one.ratios).log().clamp(-LARGEST, LARGEST) for one in entries]
    mask = [torch.ones(len(one.ratios), dtype=torch.bool) for one in entries]
    padded = (pad_sequence(part, batch_first=True) for part in (rows, logs, mask))
    return Examples(*padded)


def loss_of(found: Tensor, given: Examples, options: LearningOptions) -> Tensor:
    """Returns the mean loss of estimates, float [k, c]."""
    error = nn.functional.smooth_l1_loss(found, given.logs, beta=0.2, reduction="none")
    exists = given.mask.to(error.dtype)
    error = (error * exists).sum(dim=1) / exists.sum(dim=1)
    scores = (-found / options.temperature).masked_fill(~given.mask, -torch.inf)
    regret = given.logs - given.logs.amin(dim=1, keepdim=True)
    expected = (torch.softmax(scores, dim=1) * regret).sum(dim=1)
    return (error + options.expectation * expected).mean()


def train_network(given: Examples, options: LearningOptions, seed: int) -> CostNetwork:
    """Trains one network."""
    torch.manual_seed(seed)
    network = CostNetwork(given.rows[given.mask], options.hidden)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    count = len(given.rows)
    steps = options.epochs * -(-count // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=steps
    )
    for _ in range(options.epochs):
        for chosen in torch.split(torch.randperm(count), BATCH):
            part = Examples(given.rows[chosen], given.logs[chosen], given.mask[chosen])
            optimizer.zero_grad()
            loss = loss_of(network(part.rows), part, options)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return network.eval()


def train(
    entries: Sequence[Entry],
    options: LearningOptions,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> Chooser:
    """Trains an ensemble."""
    given = examples(entries)
    members = []
    for number in range(options.members):
        members.append(train_network(given, options, seed + number))
        show(number + 1, options.members)
    return Chooser(members, options.margin)


def chosen(chooser: Chooser, entry: Entry) -> int:
    """Returns the index of the candidate that a model chooses."""
    rows = torch.from_numpy(entry.matrix()).unsqueeze(0)
    with torch.no_grad():
        candidates = torch.zeros((*rows.shape[:2], 1), dtype=torch.int32)
        return int(chooser(candidates, rows)["candidate"])
