# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of the agents that allocate registers.

Each network gives a score to each row of its observation, so it learns one function for
all live ranges, registers or points. Illegal actions get no probability.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .environment import (
    COLOUR_COLUMNS,
    COLOURS,
    POINT_COLUMNS,
    POINTS,
    RANGE_COLUMNS,
    RANGES,
)

HIDDEN = 32


def _layers(inputs: int, outputs: int) -> nn.Sequential:
    layers = nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh())
    last = nn.Linear(HIDDEN, outputs)
    # Make the first policy follow the order of the rows, rather than chance.
    nn.init.normal_(last.weight, std=0.01)
    nn.init.zeros_(last.bias)
    return layers.append(last)


class RangeEncoder(nn.Module):
    """Returns the features of `RangeEnv`, [N, 16], unchanged."""

    out_features = RANGE_COLUMNS

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        """Returns the rows of the live ranges."""
        return observation["ranges"]


class AgentNetwork(nn.Module):
    """Scores rows, and a few further actions that have no row.

    Args:
        rows: the feature with the rows, or None if no action has a row.
        columns: the number of columns of `rows`.
        count: the number of rows of `rows`.
        has_range: whether the observation has the features of a single live range.
        others: the initial logits of the actions without a row, which come last.
        slope: the decrease of the initial logit from each row to the next.
        summary: the feature whose mean over the rows is part of the context.
        free: the initial increase of the logits of free registers, whose first column
            is 1.
    """

    def __init__(
        self,
        rows: str | None,
        columns: int,
        count: int,
        *,
        has_range: bool = True,
        others: tuple[float, ...] = (),
        slope: float = 0.0,
        summary: str | None = None,
        free: float = 0.0,
    ) -> None:
        super().__init__()
        self.rows, self.count, self.has_range = rows, count, has_range
        self.summary = summary
        context = RANGE_COLUMNS if has_range else 0
        pooled = COLOUR_COLUMNS if summary else 0
        self.score = _layers(context + columns, 1) if rows else None
        self.other = _layers(context + pooled, len(others)) if others else None
        self.value = _layers(context + pooled + (0 if has_range else columns), 1)
        steps = -slope * torch.arange(count if rows else 0, dtype=torch.float32)
        self.first = nn.Parameter(torch.cat([steps, torch.tensor(others)]))
        self.free = nn.Parameter(torch.tensor(free)) if free else None

    def forward(self, observation: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Maps observations to logits [N, actions] and values [N, 1]."""
        parts = []
        context = observation["range"] if self.has_range else None
        if self.summary:
            pooled = observation[self.summary].mean(dim=1)
            context = pooled if context is None else torch.cat([context, pooled], 1)
        if self.score is not None and self.rows is not None:
            rows = observation[self.rows]
            if self.has_range:
                each = observation["range"].unsqueeze(1).expand(-1, self.count, -1)
                rows = torch.cat([each, rows], dim=2)
            scores = self.score(rows).squeeze(2)
            if self.free is not None:
                scores = scores + self.free * observation[self.rows][:, :, 0]
            parts.append(scores)
            if context is None:
                context = observation[self.rows].mean(dim=1)
        assert context is not None
        if self.other is not None:
            parts.append(self.other(context))
        logits = torch.cat(parts, dim=1) + self.first
        legal = observation["action_mask"] > 0
        masked = torch.where(legal, logits, torch.full_like(logits, -1e9))
        return masked, self.value(context)


def network_of(agent: str) -> AgentNetwork:
    """Returns an agent's network.

    The untrained agents usually assign the heaviest live range to its first free
    register. They leave ranges without a free register to greedy.
    """
    if agent == "node":
        return AgentNetwork("ranges", RANGE_COLUMNS, RANGES, has_range=False, slope=3.0)
    if agent == "task":
        return AgentNetwork(None, 0, 0, others=(5.0, 0.0), summary="colours")
    if agent == "colour":
        return AgentNetwork(
            *("colours", COLOUR_COLUMNS, COLOURS),
            others=(-4.0, 0.0),
            slope=1.0,
            summary="colours",
            free=40.0,
        )
    return AgentNetwork("points", POINT_COLUMNS, POINTS)
