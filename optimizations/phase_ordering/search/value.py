# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The value model: how good each sequence of a core set is for a module.

A few small networks whose answers are averaged. It is judged on programs that it was
not trained on, each in turn: the core set, too, is chosen without the program that is
left out and without the sequences that were found in it only. That is also how long to
train is found out. What is found is too good where more has seen that program: of whole
pipelines what their search shares, and a core set that there was before as a whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import Show

from ..model.network import Normalised
from .measurements import Table


@dataclass(frozen=True)
class ValueSettings:
    """How the value model is trained."""

    hidden: int = 64
    members: int = 5
    epochs: int = 400
    check: int = 20  # Epochs between two looks at programs that it was not trained on.
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    dropout: float = 0.2
    # By how much smaller, as log of the size, a sequence is clearly the better one.
    temperature: float = 0.01
    # How a module counts in its program: as its bytes to the power of this. With 1 it
    # is what a program's size follows from, with 0 every module counts the same.
    share: float = 0.5
    seed: int = 0


class ValueModel(nn.Module):
    """From a module's features to ``values``, -log(size / -Oz) of each sequence."""

    centre: Tensor
    spread: Tensor
    base: Tensor

    def __init__(
        self, widths: Mapping[str, int], count: int, settings: ValueSettings
    ) -> None:
        super().__init__()
        self.normalised = Normalised(widths, 1)
        self.in_features = self.normalised.in_features
        size = self.normalised.out_features
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))
        self.register_buffer("base", torch.zeros(count))
        self.members = nn.ModuleList(
            nn.Sequential(
                nn.Linear(size, settings.hidden),
                nn.ReLU(),
                nn.Dropout(settings.dropout),
                nn.Linear(settings.hidden, count),
            )
            for _ in range(settings.members)
        )
        for member in self.members:
            # It begins as the best fixed order of sequences.
            nn.init.zeros_(member[-1].weight)  # type: ignore[index]
            nn.init.zeros_(member[-1].bias)  # type: ignore[index]

    def each(self, row: Tensor) -> Tensor:
        """The values by each member, [members, N, sequences]."""
        scaled = (self.normalised(row) - self.centre) / self.spread
        scaled = torch.clamp(scaled, -5.0, 5.0)
        return torch.stack([self.base + m(scaled) for m in self.members])

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """[N, widths] to the values."""
        return {"values": self.each(row).mean(dim=0)}


class Ranked(nn.Module):
    """The sequence that a value model likes best, then the core set in its order.

    What it likes next is much like the first. The first few of a core set complement
    each other: of as many tries, these leave smaller code.
    """

    order: Tensor

    def __init__(self, model: ValueModel) -> None:
        super().__init__()
        self.model = model
        self.in_features = model.in_features
        count = len(model.base)
        self.register_buffer("order", torch.arange(count, dtype=torch.float32))

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """[N, widths] to ``values``, which say no more than what is to come first."""
        values = self.model(row)["values"]
        chosen = (values >= values.amax(dim=1, keepdim=True)).float()
        return {"values": chosen * len(self.order) - self.order}


@dataclass(frozen=True)
class Check:
    """What the model chooses for programs that it was not trained on."""

    epochs: int  # Of the training.
    chosen: float  # Geomean of size / -Oz over programs, by the model's choice.
    fixed: float  # The same, by the sequence that was the best in the other programs.
    # The same, by the best of the core set that these lead to, for each module: what
    # could be had at most.
    best: float


@dataclass(frozen=True)
class Fitted:
    """A trained value model."""

    model: ValueModel  # Of the core set's sequences.
    epochs: int  # That it was trained for.
    # On the programs left out, by epochs; the first is of 0 epochs.
    checks: list[Check]

    @property
    def check(self) -> Check | None:
        """What is to be expected of programs like the training's; None of only one."""
        found = [check for check in self.checks if check.epochs == self.epochs]
        return found[0] if found else None


def train(
    rows: NDArray[np.float32],
    table: Table,
    core: Sequence[int],
    widths: Mapping[str, int],
    settings: ValueSettings,
    *,
    origins: Sequence[frozenset[str]] = (),
    show: Show = lambda done, total: None,
) -> Fitted:
    """Trains on all programs, for as long as was best for those left out.

    The rows are features, [modules, widths]; the table is of all sequences on the same
    modules, and ``core`` has the numbers of the core set's. ``origins`` says of each
    sequence the programs in which it was found: it is left out with the only one.
    """
    torch.set_num_threads(1)
    programs = sorted(set(table.programs))
    member = np.asarray(table.programs)
    stages = list(range(0, settings.epochs + 1, settings.check))
    picked = np.zeros((len(stages), len(rows)), np.int64)
    fixed = np.zeros(len(rows), np.int64)
    best = np.zeros(len(rows), np.int64)
    folds = programs if len(programs) > 1 else []
    for done, program in enumerate(folds):
        out = member == program
        numbers = _without(table, core, origins, program)
        inside = table.part(~out, numbers)
        model = ValueModel(widths, len(numbers), settings)

        for epoch in _fit(model, rows[~out], inside, settings):
            if epoch % settings.check == 0:
                choices = numbers[_choices(model, rows[out])]
                picked[epoch // settings.check, out] = choices
        fixed[out] = numbers[0]
        best[out] = numbers[np.argmin(table.sizes[np.ix_(out, numbers)], axis=1)]
        show(done + 1, len(folds) + 1)
    checks = [
        Check(
            epochs,
            table.ratio(table.sizes_of(picked[stage])),
            table.ratio(table.sizes_of(fixed)),
            table.ratio(table.sizes_of(best)),
        )
        for stage, epochs in enumerate(stages if folds else ())
    ]
    # A curve of few programs is rough: its neighbours have a say.
    chosen = np.array([check.chosen for check in checks] or [1.0])
    smooth = np.convolve(np.pad(chosen, 1, mode="edge"), np.ones(3) / 3, "valid")
    epochs = stages[int(np.argmin(smooth))] if folds else settings.epochs
    model = ValueModel(widths, len(core), settings)
    everything = table.part(np.ones(len(rows), bool), core)
    list(_fit(model, rows, everything, replace(settings, epochs=epochs)))
    show(len(folds) + 1, len(folds) + 1)
    return Fitted(model, epochs, checks)


def _without(
    table: Table, core: Sequence[int], origins: Sequence[frozenset[str]], program: str
) -> NDArray[np.int64]:
    """The core set that there would be without a program, the best single one first."""
    known = [
        number
        for number in range(len(table.sequences))
        if not origins or origins[number] != {program}
    ]
    inside = table.part(np.asarray(table.programs) != program, known)
    return np.array([known[number] for number in inside.greedy(len(core))])


def _choices(model: ValueModel, rows: NDArray[np.float32]) -> NDArray[np.int64]:
    model.eval()
    with torch.no_grad():
        values = model(torch.from_numpy(rows))["values"]
    model.train()
    return np.asarray(values.argmax(dim=1).numpy(), np.int64)


def _fit(
    model: ValueModel,
    rows: NDArray[np.float32],
    table: Table,
    settings: ValueSettings,
) -> Iterator[int]:
    """Trains a model; stops at each epoch for who looks at it, at 0 first."""
    torch.manual_seed(settings.seed)
    for network in model.members:
        # The last layer stays at zero.
        network[0].reset_parameters()  # type: ignore[index]
    values = -table.logs
    x, y = torch.from_numpy(rows), torch.from_numpy(values.astype(np.float32))
    weights = torch.from_numpy(module_weights(table, settings.share))
    by_bytes = torch.from_numpy(module_weights(table, 1.0))
    with torch.no_grad():
        inputs = model.normalised(x)
        model.centre.copy_(inputs.mean(dim=0))
        # What hardly varies here says little, and much elsewhere by mistake.
        model.spread.copy_(inputs.std(dim=0, correction=0).clamp(min=0.02))
        model.base.copy_((by_bytes[:, None] * y).sum(dim=0))
    # Which is the best matters; how small a module becomes at all does not.
    relative = y - y.mean(dim=1, keepdim=True)
    wanted = torch.softmax(y / settings.temperature, dim=1)
    optimizer = torch.optim.AdamW(
        model.members.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    model.train()
    yield 0
    for epoch in range(1, settings.epochs + 1):
        optimizer.zero_grad()
        found = model.each(x)
        error = (
            found - found.mean(dim=2, keepdim=True) - relative
        ) / settings.temperature
        distance = torch.nn.functional.smooth_l1_loss(
            error, torch.zeros_like(error), reduction="none"
        ).mean(dim=2)
        likely = torch.log_softmax(found / settings.temperature, dim=2)
        surprise = -(wanted * likely).sum(dim=2)
        # For each member, every program counts the same.
        loss = ((distance + surprise) * weights).sum(dim=1).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield epoch
    model.eval()


def module_weights(table: Table, share: float) -> NDArray[np.float32]:
    """Of each module, by its bytes to that power: each program has the same sum."""
    names, member = np.unique(np.asarray(table.programs), return_inverse=True)
    found = table.oz**share
    sums = np.zeros(len(names))
    np.add.at(sums, member, found)
    return (found / (len(names) * sums[member])).astype(np.float32)
