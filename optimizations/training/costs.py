# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains cost models: networks that estimate the time of each choice about a kernel.

All choices of a kernel have been measured, so the loss uses all of them. It has two
parts: the error of the estimated times, and the expected time if choices with low
estimates are likelier.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mlbridge.export import FeatureSpec, Metadata, export
from mlbridge_optimizations.show import Show, quiet

Network = TypeVar("Network", bound=nn.Module)


class CostOptions(Protocol):
    """The options that `train` needs. An optimisation's dataclass has their help."""

    @property
    def epochs(self) -> int:
        """The number of passes over the kernels."""
        ...

    @property
    def rate(self) -> float:
        """The largest learning rate of AdamW."""
        ...

    @property
    def decay(self) -> float:
        """The weight decay of AdamW."""
        ...

    @property
    def expectation(self) -> float:
        """The weight of the expected time in the loss."""
        ...

    @property
    def temperature(self) -> float:
        """The temperature of the softmax over the choices, in units of log(time)."""
        ...

    @property
    def members(self) -> int:
        """The number of networks in the ensemble."""
        ...


@dataclass(frozen=True)
class Examples:
    """Kernels, padded to the same number of choices.

    Attributes:
        rows: the features of the choices, float [k, c, columns].
        logs: log(time) relative to the first choice, float [k, c].
        mask: true where there is a choice, bool [k, c].
    """

    rows: Tensor
    logs: Tensor
    mask: Tensor

    def __getitem__(self, chosen: Tensor) -> "Examples":
        return Examples(self.rows[chosen], self.logs[chosen], self.mask[chosen])


def padded(rows: Iterable[Tensor], logs: Sequence[Tensor]) -> Examples:
    """Pads kernels, whose rows are float [c, columns] and logs float [c]."""
    masks = [torch.ones(len(one), dtype=torch.bool) for one in logs]
    return Examples(
        pad_sequence(list(rows), batch_first=True),
        pad_sequence(list(logs), batch_first=True),
        pad_sequence(masks, batch_first=True),
    )


def loss_of(estimate: Tensor, batch: Examples, options: CostOptions) -> Tensor:
    """Returns the mean loss of a batch's kernels. `estimate` is float [k, c]."""
    error = nn.functional.smooth_l1_loss(
        estimate, batch.logs, beta=0.2, reduction="none"
    )
    errors = (error * batch.mask).sum(dim=1) / batch.mask.sum(dim=1)
    scores = (-estimate / options.temperature).masked_fill(~batch.mask, -torch.inf)
    lost = batch.logs - batch.logs.amin(dim=1, keepdim=True)
    expected = (torch.softmax(scores, dim=1) * lost).sum(dim=1)
    return (errors + options.expectation * expected).mean()


def fit(network: nn.Module, given: Examples, options: CostOptions, batch: int) -> None:
    """Trains a network on all kernels, `batch` kernels at a time."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    count = len(given.rows)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.epochs * -(-count // batch)
    )
    for _ in range(options.epochs):
        for chosen in torch.split(torch.randperm(count), batch):
            part = given[chosen]
            loss = loss_of(network(part.rows), part, options)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def train(
    make: Callable[[Tensor], Network],
    given: Examples,
    options: CostOptions,
    *,
    batch: int = 16,
    seed: int = 0,
    show: Show = quiet,
) -> list[Network]:
    """Trains an ensemble.

    `make` returns a new network. Its argument is the rows of all choices, float [n,
    columns].
    """
    members = []
    for number in range(options.members):
        torch.manual_seed(seed + number)
        network = make(given.rows[given.mask])
        fit(network, given, options, batch)
        members.append(network)
        show(number + 1, options.members)
    return members


def cautious_choice(estimates: Tensor, margin: float, deviations: float) -> Tensor:
    """Returns the index of the choice with the lowest mean estimate, int64 [1].

    `estimates` are log(time) by each network, float [members, c]. Returns 0, the first
    choice, if the mean plus `deviations` standard deviations is not below `-margin`.
    The networks disagree about kernels that are unlike those of the training.
    """
    mean = estimates.mean(dim=0)
    deviation = ((estimates - mean) ** 2).mean(dim=0).sqrt()
    best = torch.argmin(mean, dim=0, keepdim=True)
    worst = (mean + deviations * deviation).index_select(0, best)
    return best * (worst < -margin).to(torch.int64)


def write(
    model: nn.Module,
    features: Sequence[FeatureSpec],
    file: Path,
    metadata: Metadata | None = None,
) -> None:
    """Writes a model whose output is the advice to an .onnx file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    export(
        *(model, file),
        features=features,
        decide="",
        batch=1,
        metadata=metadata,
        requests=32,
    )
