# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a network to make the decisions in a table of features and decisions.

This is imitation learning with LLVM's decisions as labels. Validation uses whole
translation units, because the call sites of one file are similar.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .agreement import Agreement
from .network import InliningNetwork
from .record import Table


@dataclass(frozen=True)
class Settings:
    """The settings of a training."""

    seed: int = 1
    hidden: tuple[int, ...] = (64, 32)
    derived: bool = True
    dropout: float = 0.2
    epochs: int = 200
    patience: int = 40
    batch: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    validation_share: float = 0.2


@dataclass(frozen=True)
class Epoch:
    """One line of the learning curve."""

    training_loss: float
    validation_loss: float
    validation: Agreement


@dataclass(frozen=True)
class Trained:
    """A trained network and its learning curve."""

    network: InliningNetwork  # The network of the best epoch.
    curve: list[Epoch]
    best: int  # The index of the epoch with the lowest validation loss.
    validation_units: tuple[str, ...]  # The translation units for validation.

    @property
    def best_epoch(self) -> Epoch:
        """The epoch with the lowest validation loss."""
        return self.curve[self.best]


def train(
    table: Table, settings: Settings, advance: Callable[[Epoch], None]
) -> Trained:
    """Trains a network to make the decisions of the table.

    The same table and settings give the same network on the same kind of machine.
    """
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # More threads are slower at this size.
    torch.manual_seed(settings.seed)
    held_out = _validation_units(table, settings)
    aside = np.isin(table.units, held_out)
    if not aside.any() or len(np.unique(table.decisions[~aside])) < 2:
        raise ValueError("too few decisions, or all alike: record more programs")
    features = torch.from_numpy(table.features).float()
    labels = torch.from_numpy(table.decisions).float()
    x, y = features[~aside], labels[~aside]
    x_aside, y_aside = features[aside], labels[aside]
    network = InliningNetwork(
        table.names, settings.hidden, derived=settings.derived, dropout=settings.dropout
    )
    network.fit_scaling(x)
    # Few call sites are inlined, so give both classes the same total weight.
    positive = y.mean()
    loss_of = nn.BCEWithLogitsLoss(pos_weight=(1 - positive) / positive)
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    curve: list[Epoch] = []
    best, best_state = 0, _copy(network)
    for epoch in range(settings.epochs):
        network.train()
        total = 0.0
        for rows in torch.split(torch.randperm(len(x)), settings.batch):
            optimizer.zero_grad()
            loss = loss_of(network(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        network.eval()
        with torch.no_grad():
            logits = network(x_aside)
            validation_loss = loss_of(logits, y_aside).item()
        agreement = Agreement.of((logits > 0).numpy(), (y_aside > 0).numpy())
        curve.append(Epoch(total / len(x), validation_loss, agreement))
        advance(curve[-1])
        if validation_loss < curve[best].validation_loss or epoch == 0:
            best, best_state = epoch, _copy(network)
        elif epoch - best >= settings.patience:
            break
    network.load_state_dict(best_state)
    return Trained(network, curve, best, tuple(table.unit_names[u] for u in held_out))


def _validation_units(table: Table, settings: Settings) -> list[int]:
    """Draws units with at most the share `validation_share` of all call sites."""
    sizes = np.bincount(table.units, minlength=len(table.unit_names))
    wanted = settings.validation_share * len(table.units)
    drawn: list[int] = []
    for unit in np.random.default_rng(settings.seed).permutation(len(sizes)):
        if 0 < sizes[unit] <= wanted - sizes[drawn].sum():
            drawn.append(int(unit))
    return sorted(drawn)


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}
