# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains cost models: networks that estimate the time of each choice about a kernel.

All choices of a kernel have been measured, so the loss uses all of them. The loss has
two parts: the error of the estimated times, and the expected time if a softmax of the
estimates draws the choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mlbridge.errors import InvalidArgument
from mlbridge.export import FeatureSpec, Metadata, export
from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training.settings import CostSettings

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class Examples:
    """Kernels, padded to the same number of choices.

    Attributes:
        rows: the features of the choices, float [k, c, columns].
        logs: log(time) relative to the first choice, float [k, c].
        mask: true for choices, false for padding, bool [k, c].
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


def loss_of(estimate: Tensor, batch: Examples, options: CostSettings) -> Tensor:
    """Returns the mean loss of a batch's kernels. `estimate` is float [k, c]."""
    error = nn.functional.smooth_l1_loss(
        estimate, batch.logs, beta=0.2, reduction="none"
    )
    errors = (error * batch.mask).sum(dim=1) / batch.mask.sum(dim=1)
    scores = (-estimate / options.temperature).masked_fill(~batch.mask, -torch.inf)
    lost = batch.logs - batch.logs.amin(dim=1, keepdim=True)
    expected = (torch.softmax(scores, dim=1) * lost).sum(dim=1)
    return (errors + options.expectation * expected).mean()


def fit(network: nn.Module, given: Examples, options: CostSettings) -> None:
    """Trains a network on all kernels."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    count, batch = len(given.rows), options.batch
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
    options: CostSettings,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> list[Network]:
    """Trains an ensemble.

    `make` returns a new network. Its argument has the features of all choices, float
    [n, columns]. Raises InvalidArgument if a feature or log(time) is not finite.
    """
    if not (given.rows.isfinite().all() and given.logs.isfinite().all()):
        raise InvalidArgument(
            "expected finite features and times above 0, found others; measure again"
        )
    members = []
    for number in range(options.members):
        torch.manual_seed(seed + number)
        network = make(given.rows[given.mask])
        fit(network, given, options)
        members.append(network)
        show(number + 1, options.members)
    return members


class Chooser(nn.Module):
    """Makes the choice with the lowest estimate, or the first choice.

    Several networks estimate log(time) of each choice relative to the first choice. The
    estimate is their mean plus `deviations` standard deviations. The deviation is large
    for inputs that are unlike the training data. The first choice is made unless the
    estimate of another choice is below -`margin`.
    """

    features: ClassVar[tuple[FeatureSpec, ...]]
    """The features of a request."""

    def __init__(
        self, members: Sequence[nn.Module], margin: float, deviations: float = 0.0
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.margin = margin
        self.deviations = deviations

    def index(self, given: Any, legal: Tensor | None = None) -> Tensor:
        """Returns the index of the choice, int64 [1].

        Args:
            given: the input of the networks, whose outputs are float [c].
            legal: 0 for each choice that is not allowed, float [c].
        """
        found = torch.stack([member(given) for member in self.members])
        estimate = found.mean(dim=0)
        if self.deviations:
            deviation = ((found - estimate) ** 2).mean(dim=0).sqrt()
            estimate = estimate + self.deviations * deviation
        if legal is not None:
            estimate = torch.where(legal > 0, estimate, torch.zeros_like(estimate))
        saves = (estimate.amin(dim=0, keepdim=True) < -self.margin).to(torch.int64)
        return torch.argmin(estimate, dim=0, keepdim=True) * saves


def write(chooser: Chooser, file: Path, metadata: Metadata | None = None) -> None:
    """Writes a model to an .onnx file. Its output is the advice."""
    file.parent.mkdir(parents=True, exist_ok=True)
    export(
        *(chooser, file),
        features=chooser.features,
        decide="",
        batch=1,
        metadata=metadata,
        requests=32,
    )
