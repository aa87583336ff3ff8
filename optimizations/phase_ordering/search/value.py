# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The value model: how good each sequence of a core set is for a module.

It averages a few small networks. The number of epochs is found by leaving out each
program in turn: without the sequences found in this program only, a new core set is
chosen and a model trained. The estimates for the programs left out are too good if more
has seen these programs: shared results of a search of pipelines, or a given core set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import Show, quiet

from ..model.network import Normalised
from .measurements import Table

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class ValueSettings:
    """The settings of a training."""

    hidden: int = 64
    members: int = 5
    epochs: int = 400
    check: int = 20  # Epochs between two checks on programs left out.
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    dropout: float = 0.2
    temperature: float = 0.01  # A clear difference between sequences, in log(size).
    share: float = 0.5  # See `module_weights`.
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
            # The network starts as the best fixed order of sequences.
            nn.init.zeros_(member[-1].weight)  # type: ignore[index]
            nn.init.zeros_(member[-1].bias)  # type: ignore[index]

    def each(self, row: Tensor) -> Tensor:
        """Returns each member's values, [members, N, sequences]."""
        scaled = (self.normalised(row) - self.centre) / self.spread
        scaled = torch.clamp(scaled, -5.0, 5.0)
        return torch.stack([self.base + m(scaled) for m in self.members])

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """From [N, widths] to [N, sequences]."""
        return {"values": self.each(row).mean(dim=0)}


class Ranked(nn.Module):
    """Ranks the value model's first choice first, then the core set in its order.

    The model's next choices resemble its first, but the first sequences of a core set
    complement each other, so they give smaller code in the same number of tries.
    """

    order: Tensor

    def __init__(self, model: ValueModel) -> None:
        super().__init__()
        self.model = model
        self.in_features = model.in_features
        count = len(model.base)
        self.register_buffer("order", torch.arange(count, dtype=torch.float32))

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """From [N, widths] to ``values``, [N, sequences], which are only ranks."""
        values = self.model(row)["values"]
        chosen = (values >= values.amax(dim=1, keepdim=True)).float()
        return {"values": chosen * len(self.order) - self.order}


@dataclass(frozen=True)
class Check:
    """Geomeans of size / -Oz over programs left out of the training."""

    epochs: int  # Of the training.
    chosen: float  # By the model.
    fixed: float  # By the sequence that is best for the other programs.
    best: float  # By the best sequence of the others' core set: the optimum.


@dataclass(frozen=True)
class Fitted:
    """A trained value model."""

    model: ValueModel
    epochs: int  # Of the training.
    checks: list[Check]  # By epochs, from 0; empty for a single program.

    @property
    def check(self) -> Check | None:
        """The expected result for programs like the training's, if known."""
        return next((it for it in self.checks if it.epochs == self.epochs), None)


def train(
    rows: Rows,
    table: Table,
    core: Sequence[int],
    widths: Mapping[str, int],
    settings: ValueSettings,
    *,
    origins: Sequence[frozenset[str]] = (),
    show: Show = quiet,
) -> Fitted:
    """Trains on all programs, for the number of epochs that is best for others.

    That number is found by leaving programs out. The rows are features, [modules,
    widths]; the table has all sequences on the same modules; ``core`` has the indices
    of the core set's sequences. ``origins`` has, for each sequence, the programs in
    which it was found; if there is only one, the sequence is left out with it.
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
    bounds = [table.ratio(table.sizes_of(choices)) for choices in (fixed, best)]
    checks = [
        Check(epochs, table.ratio(table.sizes_of(choices)), *bounds)
        for epochs, choices in zip(stages, picked, strict=True)
        if folds
    ]
    # The curve of few programs is rough: smooth it.
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
    """Chooses a core set without a program, the best single sequence first."""
    known = [
        number
        for number in range(len(table.sequences))
        if not origins or origins[number] != {program}
    ]
    inside = table.part(np.asarray(table.programs) != program, known)
    return np.array([known[number] for number in inside.greedy(len(core))])


def _choices(model: ValueModel, rows: Rows) -> NDArray[np.int64]:
    model.eval()
    with torch.no_grad():
        values = model(torch.from_numpy(rows))["values"]
    model.train()
    return np.asarray(values.argmax(dim=1).numpy(), np.int64)


def _fit(
    model: ValueModel, rows: Rows, table: Table, settings: ValueSettings
) -> Iterator[int]:
    """Trains a model; yields before the first epoch, and after each."""
    torch.manual_seed(settings.seed)
    for network in model.members:
        # The last layer stays at zero.
        network[0].reset_parameters()  # type: ignore[index]
    x, y = torch.from_numpy(rows), torch.from_numpy((-table.logs).astype(np.float32))
    weights = torch.from_numpy(module_weights(table, settings.share))
    by_bytes = torch.from_numpy(module_weights(table, 1.0))
    with torch.no_grad():
        inputs = model.normalised(x)
        model.centre.copy_(inputs.mean(dim=0))
        # An input that is nearly constant here would be too strong elsewhere.
        model.spread.copy_(inputs.std(dim=0, correction=0).clamp(min=0.02))
        model.base.copy_((by_bytes[:, None] * y).sum(dim=0))
    # Only differences between sequences matter, not a module's mean.
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
        error = found - found.mean(dim=2, keepdim=True) - relative
        error = error / settings.temperature
        distance = torch.nn.functional.smooth_l1_loss(
            error, torch.zeros_like(error), reduction="none"
        ).mean(dim=2)
        likely = torch.log_softmax(found / settings.temperature, dim=2)
        surprise = -(wanted * likely).sum(dim=2)
        # For each member, all programs have the same weight.
        loss = ((distance + surprise) * weights).sum(dim=1).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield epoch
    model.eval()


def module_weights(table: Table, share: float) -> Rows:
    """Returns modules' weights, their -Oz bytes to that power, 1 / programs in sum.

    With power 1 they are shares of a program's size, with 0 all modules weigh the same.
    """
    names, member = np.unique(np.asarray(table.programs), return_inverse=True)
    found = table.oz**share
    sums = np.zeros(len(names))
    np.add.at(sums, member, found)
    return (found / (len(names) * sums[member])).astype(np.float32)
