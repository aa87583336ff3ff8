# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The value model, which predicts how good each sequence of a core set is for a module.

The model averages a few small networks. Cross-validation over programs finds the number
of epochs. For each program, a core set is chosen and a model is trained without the
program, and without the sequences that were found on it. The estimate is too optimistic
if the program has influenced other sequences, for example in the joint search for
pipelines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import Show, quiet

from ..model.networks import Normalised
from .measurements import Table

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class ValueSettings:
    """The settings of a training."""

    hidden: int = 64
    members: int = 5
    epochs: int = 400
    check: int = 20  # The number of epochs between two validations.
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    dropout: float = 0.2
    temperature: float = 0.01  # The difference in log(size) that is considered large.
    share: float = 0.5  # See `module_weights`.
    seed: int = 0


class ValueModel(nn.Module):
    """A network that predicts ``values``: -log(size / -Oz) for each sequence."""

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
            # Start at zero, so that the untrained network predicts the mean values.
            nn.init.zeros_(member[-1].weight)  # type: ignore[index]
            nn.init.zeros_(member[-1].bias)  # type: ignore[index]

    def each(self, row: Tensor) -> Tensor:
        """Returns the values of each member, [members, N, sequences]."""
        scaled = (self.normalised(row) - self.centre) / self.spread
        scaled = torch.clamp(scaled, -5.0, 5.0)
        return torch.stack([self.base + m(scaled) for m in self.members])

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """Maps a tensor [N, in_features] to values [N, sequences]."""
        return {"values": self.each(row).mean(dim=0)}


class Ranked(nn.Module):
    """Ranks the value model's best sequence first, then the core set in its order.

    The best sequences of a model are often similar. The first sequences of a core set
    complement each other, so trying them gives smaller code.
    """

    order: Tensor

    def __init__(self, model: ValueModel) -> None:
        super().__init__()
        self.model = model
        self.in_features = model.in_features
        count = len(model.base)
        self.register_buffer("order", torch.arange(count, dtype=torch.float32))

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """Maps a tensor [N, in_features] to ranks ``values``, [N, sequences]."""
        values = self.model(row)["values"]
        chosen = (values >= values.amax(dim=1, keepdim=True)).float()
        return {"values": chosen * len(self.order) - self.order}


@dataclass(frozen=True)
class Check:
    """A validation. The results are geomeans of size / -Oz over unseen programs."""

    epochs: int  # The number of epochs of the training.
    chosen: float  # The result with the model's choice.
    fixed: float  # The result with the best sequence for the training programs.
    best: float  # The result with the best sequence of the core set, the optimum.


@dataclass(frozen=True)
class Fitted:
    """A trained value model."""

    model: ValueModel
    epochs: int  # The number of epochs of the training.
    checks: list[Check]  # The validations by epochs. Empty for a single program.

    @property
    def check(self) -> Check | None:
        """The validation after `epochs`, or None for a single program."""
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
    """Trains on all programs. The number of epochs is found with cross-validation.

    ``rows`` has the features of the table's modules, [modules, widths]. ``core`` has
    the indices of the core set's sequences in the table. ``origins`` has, for each
    sequence, the programs on which it was found. A sequence that was found on only one
    program is not used when that program is the validation set.
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
    # Smooth the curve, because it is noisy with few programs.
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
    """Chooses a core set without a program. The best single sequence is first."""
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
    """Trains a model. Yields 0, and then the number of each finished epoch."""
    torch.manual_seed(settings.seed)
    for network in model.members:
        # Initialise only the first layer, because the last layer must start at zero.
        network[0].reset_parameters()  # type: ignore[index]
    x, y = torch.from_numpy(rows), torch.from_numpy((-table.logs).astype(np.float32))
    weights = torch.from_numpy(module_weights(table, settings.share))
    by_bytes = torch.from_numpy(module_weights(table, 1.0))
    with torch.no_grad():
        inputs = model.normalised(x)
        model.centre.copy_(inputs.mean(dim=0))
        # Limit the scale of inputs that are nearly constant in the training.
        model.spread.copy_(inputs.std(dim=0, correction=0).clamp(min=0.02))
        model.base.copy_((by_bytes[:, None] * y).sum(dim=0))
    # Subtract each module's mean, because only differences between sequences matter.
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
        # Sum over members and modules. `weights` gives each program the same weight.
        loss = ((distance + surprise) * weights).sum(dim=1).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield epoch
    model.eval()


def module_weights(table: Table, share: float) -> Rows:
    """Returns a weight for each module: its -Oz size to the power `share`, normalised.

    The weights of each program have the same sum. The sum over all modules is 1.
    """
    names, member = np.unique(np.asarray(table.programs), return_inverse=True)
    found = table.oz**share
    sums = np.zeros(len(names))
    np.add.at(sums, member, found)
    return (found / (len(names) * sums[member])).astype(np.float32)
