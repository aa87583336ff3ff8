# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A value of states: which of a few sequences has made the smaller code, by its IR.

What a sequence will make of a module is hard to tell before; which of two results is
smaller is easier to tell, and no object need be made for it. A linear function of how
often each kind of instruction occurs, learned from the differences between results of
the same module: what all results of a module have in common cancels out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import Show

from ..environment.compiler import SequenceFailed, SequenceRunner
from ..environment.runners import Runners
from .measurements import Table
from .value import module_weights

Array = NDArray[np.float64]

# What the model sees of a state: `actions` says which sequence has led to it.
OBSERVATION = ("histogram", "counts", "actions")

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
MARGINS = (0.0, 0.002, 0.005)
# A sequence that makes more of a difference than this has no more to teach.
_CLIP = 0.2


class StateValue(nn.Module):
    """From the features of a state to ``value``, by which states of a module compare.

    It is minus the size that is expected, up to what they have in common, and in units
    of an instruction's usual share. All but the first sequence have to be better by a
    margin.
    """

    weights: Tensor

    def __init__(
        self, widths: Mapping[str, int], weights: Array, margin: float
    ) -> None:
        """For features of those widths, with a weight for each but `actions`."""
        super().__init__()
        self.widths = list(widths.values())
        self.in_features = sum(self.widths)
        self.sequences = widths["actions"] // 2
        self.margin = margin
        column = torch.from_numpy(weights.astype(np.float32))[:, None]
        self.register_buffer("weights", column)

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """[N, widths] to [N, 1]."""
        histogram, counts, actions = torch.split(row, self.widths, dim=1)
        size = torch.cat([histogram, counts], dim=1) @ self.weights
        first = actions[:, self.sequences : self.sequences + 1]
        instructions = histogram.sum(dim=1, keepdim=True)
        return {"value": -size - self.margin * instructions * (1.0 - first)}


@dataclass(frozen=True)
class Foresight:
    """A trained value of states."""

    model: StateValue  # Of them.
    ridge: float  # By how much its weights were held down.
    margin: float  # See `StateValue`.
    # Geomean of size / -Oz over programs, each by a model that has not seen it.
    chosen: float
    fixed: float  # By the first sequence, always.
    best: float  # By the smallest of those that are looked at.
    # All settings: ridge, margin, and what `chosen` was by them.
    tried: tuple[tuple[float, float, float], ...] = ()


def outcomes(
    runners: Runners,
    modules: Sequence[Path],
    ahead: int,
    show: Show = lambda done, total: None,
) -> NDArray[np.float32]:
    """The features of what each of the first actions makes of modules.

    Returns:
        [modules, ahead, widths]. Where the compiler fails there is no outcome, but NaN:
        nothing is learned from it, and it is never chosen, as `Model` does not.
    """
    options = runners.options
    nothing = np.full(sum(options.widths.values()), np.nan, np.float32)

    def row(runner: SequenceRunner, module: Path, action: int) -> NDArray[np.float32]:
        try:
            runner.reset(module)
            return options.row(runner.step(module, [action]).features)
        except SequenceFailed:
            return nothing

    def rows(runner: SequenceRunner, module: Path) -> NDArray[np.float32]:
        return np.stack([row(runner, module, action) for action in range(ahead)])

    found = dict(runners.map(rows, modules, show))
    return np.stack([found[module] for module in modules])


def train(
    rows: NDArray[np.float32],
    table: Table,
    widths: Mapping[str, int],
    *,
    show: Show = lambda done, total: None,
) -> Foresight:
    """Learns from all programs, as it was best for those left out.

    The rows are outcomes, [modules, ahead, widths], by the table's first sequences.
    """
    settings = list(product(RIDGES, MARGINS))
    programs = np.asarray(table.programs)
    ahead = rows.shape[1]
    sizes = table.sizes[:, :ahead]
    every = np.ones(len(programs), bool)
    found: list[tuple[float, float, float]] = []
    for done, (ridge, margin) in enumerate(settings, 1):
        chosen = sizes[:, 0].copy()
        for program in np.unique(programs):
            out = programs == program
            model = _fit(rows, sizes, table, ~out, widths, ridge, margin)
            picked = _choices(model, rows[out])
            chosen[out] = sizes[out, picked]
        found.append((table.ratio(chosen), ridge, margin))
        show(done, len(settings))
    ratio, ridge, margin = min(found)
    return Foresight(
        _fit(rows, sizes, table, every, widths, ridge, margin),
        ridge,
        margin,
        ratio,
        table.ratio(sizes[:, 0]),
        table.ratio(sizes.min(axis=1)),
        tuple((ridge, margin, ratio) for ratio, ridge, margin in found),
    )


def _fit(
    rows: NDArray[np.float32],
    sizes: Array,
    table: Table,
    inside: NDArray[np.bool_],
    widths: Mapping[str, int],
    ridge: float,
    margin: float,
) -> StateValue:
    """Weighted ridge regression of differences to the first sequence's result."""
    count = widths["histogram"] + widths["counts"]
    states = rows[inside, :, :count].astype(np.float64)
    instructions = states[:, 0, : widths["histogram"]].sum(axis=1) + 1.0
    inputs = (states[:, 1:] - states[:, :1]) / instructions[:, None, None]
    first = sizes[inside, :1]
    wanted = np.clip((sizes[inside, 1:] - first) / first, -_CLIP, _CLIP)
    weights = module_weights(table.part(inside, [0]), 0.5).astype(np.float64)
    weights = np.repeat(weights, wanted.shape[1])
    x, y = inputs.reshape(-1, count), wanted.reshape(-1)
    there = ~np.isnan(x[:, 0])
    x, y, weights = x[there], y[there], weights[there]
    gram = (x * weights[:, None]).T @ x
    # Each weight by how much its input varies; what does not vary has none.
    scale = np.diag(gram) + 1e-9 * np.trace(gram) / count + 1e-12
    solved = np.linalg.solve(
        gram + ridge * np.diag(scale), (x * weights[:, None]).T @ y
    )
    return StateValue(widths, solved, margin)


def _choices(model: StateValue, rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """Of [modules, ahead, widths], the states of the greatest value."""
    flat = torch.from_numpy(rows.reshape(-1, rows.shape[2]))
    with torch.no_grad():
        values = model(flat)["value"].reshape(rows.shape[:2])
    # Never choose an action whose outcome is missing.
    return np.asarray(values.nan_to_num(-torch.inf).argmax(dim=1).numpy(), np.int64)
