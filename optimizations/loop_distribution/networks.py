# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks that decide about loops.

A gated graph network (Li et al., "Gated Graph Sequence Neural Networks", ICLR 2016)
gives each node of the dependence graph a state, as in the bridge's paper. The edges are
a list, so a graph may have any number of nodes. A second network estimates the time of
each legal choice. The choice with the lowest estimate is made if it saves more than
`margin`. Otherwise, the first choice is made.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from mlbridge.export import FeatureSpec, Metadata
from mlbridge_optimizations.training import costs
from mlbridge_optimizations.training.costs import Chooser

from .table import CYCLES

Features = Mapping[str, Tensor]
"""The features of one loop, by the names in compilers/llvm/LoopDistribution."""

MOST_SEEDS = 8
"""The maximum number of seeds, and thus of loops, in a distribution. It equals the
limit of legalPlans() in DistributionPlan.h."""
KINDS = 3
"""The number of kinds of edges: register, memory, control."""
NODE_COLUMNS, LOOP_COLUMNS, DISTRIBUTION_COLUMNS, FACTOR_COLUMNS = 25, 14, 11, 6


class GraphEncoder(nn.Module):
    """Maps a dependence graph to a state for each node, float [n, hidden]."""

    def __init__(self, hidden: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.first = nn.Linear(NODE_COLUMNS, hidden)
        self.messages = nn.Linear(hidden, 2 * KINDS * hidden, bias=False)
        self.gates = nn.Linear(2 * hidden, 2 * hidden)
        self.update = nn.Linear(2 * hidden, hidden)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """`nodes` is float [n, 25], and `edges` int32 [m, 3]: from, to, kind."""
        state = torch.tanh(self.first(nodes))
        count, hidden = state.shape
        pairs = edges.to(torch.int64)
        # Each edge carries a message in both directions.
        source = torch.cat([pairs[:, 0], pairs[:, 1]])
        target = torch.cat([pairs[:, 1], pairs[:, 0]])
        kind = pairs[:, 2].clamp(max=KINDS - 1)
        kind = torch.cat([kind, kind + KINDS])
        row = source * (2 * KINDS) + kind
        for _ in range(self.steps):
            sent = self.messages(state).reshape(count * 2 * KINDS, hidden)
            received = torch.zeros_like(state).index_put(
                (target,), sent[row], accumulate=True
            )
            both = torch.cat([state, received], dim=1)
            gates = torch.sigmoid(self.gates(both))
            forget, reset = gates[:, :hidden], gates[:, hidden:]
            candidate = torch.tanh(
                self.update(torch.cat([reset * state, received], dim=1))
            )
            state = forget * state + (1 - forget) * candidate
        return state


class _Scores(nn.Module):
    """Estimates log(time) of choices, relative to the first choice."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, rows: Tensor) -> Tensor:
        scores: Tensor = self.score(torch.tanh(self.hidden(rows))).squeeze(1)
        return scores - scores[:1]


class _Network(nn.Module):
    """Encodes the graph, and then estimates the times of all choices, float [c]."""

    def __init__(self, hidden: int, steps: int, columns: int) -> None:
        super().__init__()
        self.encoder = GraphEncoder(hidden, steps)
        self.scores = _Scores(columns, hidden)

    def forward(self, features: Features) -> Tensor:
        state = self.encoder(features["nodes"], features["edges"])
        return self.estimate(state, features)

    @abstractmethod
    def estimate(self, state: Tensor, features: Features) -> Tensor:
        """Returns the estimates from the encoder's state, float [n, hidden]."""


class CyclesRule(nn.Module):
    """The rule with which networks are compared: LLVM's estimate of the cycles."""

    def forward(self, features: Features) -> Tensor:
        """Returns the estimates, float [c]."""
        name, column = CYCLES["distribution"]
        cycles = features[name][:, column]
        return cycles - cycles[:1]


class DistributionNetwork(_Network):
    """Estimates the times of all legal distributions of a loop, float [c].

    The inputs are a distribution's columns and a sum over its loops. Each loop adds a
    function of the states of its seeds.
    """

    inputs = ("nodes", "edges", "loop", "distributions", "distribution_features")

    def __init__(self, hidden: int, steps: int) -> None:
        columns = 2 * DISTRIBUTION_COLUMNS + LOOP_COLUMNS + hidden
        super().__init__(hidden, steps, columns)
        self.part = nn.Linear(hidden, hidden)

    def estimate(self, state: Tensor, features: Features) -> Tensor:
        """See `_Network`."""
        rows = features["distribution_features"]
        state = state * features["nodes"][:, :1]  # Keep only seeds.
        loops = torch.arange(MOST_SEEDS, dtype=torch.int32).reshape(1, MOST_SEEDS, 1)
        # float [c, loops, n]
        member = (features["distributions"].unsqueeze(1) == loops).to(state.dtype)
        sums = torch.matmul(member, state)
        parts = torch.tanh(self.part(sums)).sum(dim=1)
        same = features["loop"].unsqueeze(0).expand(rows.shape[0], -1)
        first = rows[:1]
        found: Tensor = self.scores(torch.cat([rows - first, rows, same, parts], dim=1))
        return found


class FactorsNetwork(_Network):
    """Estimates the times of all factors of a loop, float [c]."""

    inputs = ("nodes", "edges", "loop", "choices", "factor_features")

    def __init__(self, hidden: int, steps: int) -> None:
        columns = 2 * FACTOR_COLUMNS + LOOP_COLUMNS + 2 * hidden + 6
        super().__init__(hidden, steps, columns)

    def estimate(self, state: Tensor, features: Features) -> Tensor:
        """See `_Network`."""
        graph = torch.cat([state.sum(dim=0), state.mean(dim=0)])
        rows, loop = features["factor_features"], features["loop"]
        choices = features["choices"].to(state.dtype)
        logs = torch.log2(choices.clamp(min=1))
        given = (choices > 0).to(state.dtype)
        same = torch.cat([loop, graph]).unsqueeze(0).expand(choices.shape[0], -1)
        every = [rows - rows[:1], rows, same, logs, given]
        found: Tensor = self.scores(torch.cat(every, dim=1))
        return found


class DistributionChooser(Chooser):
    """Chooses a legal distribution. Each input has a first dimension of size 1."""

    features: ClassVar = (
        FeatureSpec("nodes", "float", ("n", NODE_COLUMNS)),
        FeatureSpec("edges", "int32", ("m", 3), indexes="n"),
        FeatureSpec("loop", "float", (LOOP_COLUMNS,)),
        FeatureSpec("distributions", "int32", ("c", "n"), low=0, high=MOST_SEEDS - 1),
        FeatureSpec("distribution_features", "float", ("c", DISTRIBUTION_COLUMNS)),
    )

    def forward(
        self,
        nodes: Tensor,
        edges: Tensor,
        loop: Tensor,
        distributions: Tensor,
        distribution_features: Tensor,
    ) -> dict[str, Tensor]:
        """Returns the index of a choice, int64 [1]."""
        given = {
            "nodes": nodes[0],
            "edges": edges[0],
            "loop": loop[0],
            "distributions": distributions[0],
            "distribution_features": distribution_features[0],
        }
        return {"distribution": self.index(given)}


class FactorsChooser(Chooser):
    """Chooses legal factors. Each input has a first dimension of size 1."""

    features: ClassVar = (
        *DistributionChooser.features[:3],
        FeatureSpec("choices", "int32", ("c", 3), low=0, high=32),
        FeatureSpec("factor_features", "float", ("c", FACTOR_COLUMNS)),
        FeatureSpec("action_mask", "float", ("c",)),
    )

    def forward(
        self,
        nodes: Tensor,
        edges: Tensor,
        loop: Tensor,
        choices: Tensor,
        factor_features: Tensor,
        action_mask: Tensor,
    ) -> dict[str, Tensor]:
        """Returns the index of a choice, int64 [1]."""
        given = {
            "nodes": nodes[0],
            "edges": edges[0],
            "loop": loop[0],
            "choices": choices[0],
            "factor_features": factor_features[0],
        }
        return {"factors": self.index(given, action_mask[0])}


CHOOSERS: dict[str, type[Chooser]] = {
    "distribution": DistributionChooser,
    "factors": FactorsChooser,
}


def write(
    decision: str,
    members: Sequence[nn.Module],
    margin: float,
    file: Path,
    metadata: Metadata | None = None,
) -> None:
    """Writes the model of a decision to an .onnx file."""
    costs.write(CHOOSERS[decision](members, margin), file, metadata)
