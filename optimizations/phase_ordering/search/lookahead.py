# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lookahead model, which compares the IR after several sequences.

The model predicts which IR gives the smallest object file. This is easier than to
predict the effect of a sequence. The model is a linear function of the instruction
histogram, trained on differences between results of the same module.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import Show, quiet

from ..environment.compiler import SequenceFailed, SequenceRunner
from ..environment.runners import Runners
from .measurements import Table
from .value import Rows, module_weights

Array = NDArray[np.float64]

# The features of a state. `actions` shows which sequence has led to the state.
OBSERVATION = ("histogram", "counts", "actions")

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
MARGINS = (0.0, 0.002, 0.005)
_CLIP = 0.2  # Clip larger relative differences in training.


class StateValue(nn.Module):
    """A linear function that scores states of one module. The highest score is best.

    The score is minus the expected code size, in a unit that depends on the module. The
    first sequence is chosen unless another sequence is better by a margin.
    """

    weights: Tensor

    def __init__(
        self, widths: Mapping[str, int], weights: Array, margin: float
    ) -> None:
        """Stores the widths of all features, and weights for histogram and counts."""
        super().__init__()
        self.widths = list(widths.values())
        self.in_features = sum(self.widths)
        self.sequences = widths["actions"] // 2
        self.margin = margin
        column = torch.from_numpy(weights.astype(np.float32))[:, None]
        self.register_buffer("weights", column)

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """Maps a tensor [N, in_features] to scores [N, 1]."""
        histogram, counts, actions = torch.split(row, self.widths, dim=1)
        size = torch.cat([histogram, counts], dim=1) @ self.weights
        first = actions[:, self.sequences : self.sequences + 1]
        instructions = histogram.sum(dim=1, keepdim=True)
        return {"value": -size - self.margin * instructions * (1.0 - first)}


@dataclass(frozen=True)
class Foresight:
    """A trained lookahead model."""

    model: StateValue
    ridge: float  # The regularisation.
    margin: float  # See `StateValue`.
    # The next fields are geomeans of size / -Oz over programs.
    chosen: float  # The result with a model that was not trained on the program.
    fixed: float  # The result with the first sequence.
    best: float  # The result with the best sequence that the model compares.
    tried: tuple[tuple[float, float, float], ...] = ()  # (ridge, margin, chosen)


def outcomes(
    runners: Runners, modules: Sequence[Path], ahead: int, show: Show = quiet
) -> Rows:
    """Returns the features after each of the first `ahead` actions.

    The result is [modules, ahead, widths].

    If the compiler fails, the features are NaN. Such an action is ignored in training
    and never chosen.
    """
    options = runners.options
    width = sum(options.widths.values())

    def rows(runner: SequenceRunner, module: Path) -> Rows:
        found = np.full((ahead, width), np.nan, np.float32)
        for action in range(ahead):
            with suppress(SequenceFailed):
                runner.reset(module)
                found[action] = options.row(runner.step(module, [action]).features)
        return found

    found = dict(runners.map(rows, modules, show))
    return np.stack([found[module] for module in modules])


def train(
    rows: Rows, table: Table, widths: Mapping[str, int], *, show: Show = quiet
) -> Foresight:
    """Trains on all programs, with the settings that are best in cross-validation.

    `rows` is the result of `outcomes`: the features of each module after each of the
    first sequences of `table`. `table` has the modules' code sizes after the sequences.
    """
    settings = list(product(RIDGES, MARGINS))
    programs = np.asarray(table.programs)
    sizes = table.sizes[:, : rows.shape[1]]
    found: list[tuple[float, float, float]] = []
    for done, (ridge, margin) in enumerate(settings, 1):
        chosen = sizes[:, 0].copy()
        for program in np.unique(programs):
            out = programs == program
            model = StateValue(widths, _fit(rows, table, ~out, widths, ridge), margin)
            chosen[out] = sizes[out, _choices(model, rows[out])]
        found.append((table.ratio(chosen), ridge, margin))
        show(done, len(settings))
    ratio, ridge, margin = min(found)
    every = np.ones(len(programs), bool)
    model = StateValue(widths, _fit(rows, table, every, widths, ridge), margin)
    bounds = (table.ratio(sizes[:, 0]), table.ratio(sizes.min(axis=1)))
    tried = tuple((ridge, margin, ratio) for ratio, ridge, margin in found)
    return Foresight(model, ridge, margin, ratio, *bounds, tried)


def _fit(
    rows: Rows,
    table: Table,
    inside: NDArray[np.bool_],
    widths: Mapping[str, int],
    ridge: float,
) -> Array:
    """Fits differences in size from the first sequence, by ridge regression."""
    sizes = table.sizes[inside, : rows.shape[1]]
    count = widths["histogram"] + widths["counts"]
    states = rows[inside, :, :count].astype(np.float64)
    instructions = states[:, 0, : widths["histogram"]].sum(axis=1) + 1.0
    inputs = (states[:, 1:] - states[:, :1]) / instructions[:, None, None]
    first = sizes[:, :1]
    wanted = np.clip((sizes[:, 1:] - first) / first, -_CLIP, _CLIP)
    weights = module_weights(table.part(inside, [0]), 0.5).astype(np.float64)
    weights = np.repeat(weights, wanted.shape[1])
    x, y = inputs.reshape(-1, count), wanted.reshape(-1)
    there = ~np.isnan(x[:, 0])
    x, y, weights = x[there], y[there], weights[there]
    gram = (x * weights[:, None]).T @ x
    # Scale the regularisation by the variance of each input.
    scale = np.diag(gram) + 1e-9 * np.trace(gram) / count + 1e-12
    right = (x * weights[:, None]).T @ y
    return np.linalg.solve(gram + ridge * np.diag(scale), right)


def _choices(model: StateValue, rows: Rows) -> NDArray[np.int64]:
    flat = torch.from_numpy(rows.reshape(-1, rows.shape[2]))
    with torch.no_grad():
        values = model(flat)["value"].reshape(rows.shape[:2])
    # Replace NaN, so that a failed action is never chosen.
    return np.asarray(values.nan_to_num(-torch.inf).argmax(dim=1).numpy(), np.int64)
