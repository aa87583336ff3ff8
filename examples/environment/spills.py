# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns which live range to spill, with the compiler of spills.cpp.

    mlbridge train examples/environment/spills.py --steps 40000
    mlbridge evaluate examples/environment/spills.py build/spills/policy/model.onnx

With ``--graph``, observations are interference graphs of varying size, and the policy
is `GraphNetwork`. With ``--classes 2``, there are two agents, one per register class.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from typer import Option

from mlbridge.envs import CompilerEnv, MultiAgentCompilerEnv, Padded
from mlbridge_optimizations import Metric, Optimization

PROGRAM = (
    Path(__file__).resolve().parents[2] / "build/release/examples/environment/spills"
)
AGENTS = ("int", "float")
VALUES = 32  # Values per function. A graph has at most one node per value.


@dataclass(frozen=True)
class Settings:
    """The compiler's options."""

    spec: Annotated[str, Option(help="The transport: pipe, shm or grpc.")] = "shm"
    registers: Annotated[int, Option(min=1, max=8, help="Registers in each class.")] = 4
    classes: Annotated[
        int, Option(min=1, max=2, help="Register classes, each with its own agent.")
    ] = 1
    graph: Annotated[
        bool, Option("--graph", help="Show the agent the interference graph.")
    ] = False


def make_env(settings: Settings, worker: int) -> Any:
    """Makes the environment, whose compiler starts at the first reset."""
    observations: spaces.Space[Any] = spaces.Box(
        0, 2, (3 * (settings.registers + 1),), np.float32
    )
    actions: spaces.Space[Any] = spaces.Discrete(settings.registers + 1)
    if settings.graph:
        graph = spaces.Graph(spaces.Box(0, 2, (3,)), spaces.Box(0, 2, (1,)))
        mask = spaces.Sequence(spaces.Box(0, 1, (), np.int8), stack=True)
        observations = Padded(
            spaces.Dict({"graph": graph, "action_mask": mask}),
            limits={"graph.nodes": VALUES, "graph.edges": VALUES * (VALUES - 1) // 2},
            extents={"action_mask": "graph.nodes"},
        )
        actions = spaces.Discrete(VALUES)
    command = [
        *(str(PROGRAM), f"--registers={settings.registers}", f"--values={VALUES}"),
        *(f"--classes={settings.classes}", f"--graph={int(settings.graph)}"),
    ]
    if settings.classes == 1:
        return CompilerEnv(
            command,
            settings.spec,
            observation_space=observations,
            action_space=actions,
            worker=worker,
        )
    return MultiAgentCompilerEnv(
        command,
        settings.spec,
        observation_spaces=dict.fromkeys(AGENTS, observations),
        action_spaces=dict.fromkeys(AGENTS, actions),
        worker=worker,
    )


class GraphNetwork(nn.Module):
    """Scores each node after two rounds of messages along the edges."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.begin = nn.Linear(3, width)
        self.messages = nn.ModuleList(nn.Linear(width + 1, width) for _ in range(2))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.score, self.value = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns scores [N, nodes] and values [N, 1] for N graphs."""
        nodes, edges = seen["graph.nodes"], seen["graph.edges"]
        is_node = seen["graph.nodes_mask"].unsqueeze(2)
        is_edge = seen["graph.edges_mask"].unsqueeze(2)
        state = self.begin(nodes).relu()
        links, width = seen["graph.edge_links"].long(), state.shape[2]
        ends = [links[:, :, side, None].expand(-1, -1, width) for side in (0, 1)]
        for message, update in zip(self.messages, self.updates, strict=True):
            heard = torch.zeros_like(state)
            for source, target in (ends, ends[::-1]):
                said = message(torch.cat([state.gather(1, source), edges], 2))
                heard = heard.scatter_add(1, target, said.relu() * is_edge)
            state = update(torch.cat([state, heard], 2)).relu()
        scores = self.score(state).squeeze(2)
        scores = scores.masked_fill(seen["action_mask"] == 0, -1e9)
        mean = (state * is_node).sum(1) / is_node.sum(1).clamp(min=1)
        return scores, self.value(mean)


def rows_of(seen: Any) -> Any:
    """Returns the features (see spills.cpp) of each range that can be spilled."""
    if isinstance(seen, dict):
        return seen["graph.nodes"][seen["action_mask"] == 1]
    return seen.reshape(-1, 3)


OPTIMIZATION = Optimization(
    "spills",
    "Which live range goes to memory.",
    make_env,
    Settings,
    network=lambda settings, observations, actions: (
        GraphNetwork() if settings.graph else None
    ),
    baselines={
        "the one that lives longest": lambda _: lambda seen: 0,
        "the cheapest": lambda _: lambda seen: int(np.argmin(rows_of(seen)[:, 1])),
        "the least cost for its reach": lambda _: (
            lambda seen: int(np.argmin(rows_of(seen)[:, 2]))
        ),
    },
    metric=Metric(
        "return", "-spill cost / optimum", stock=-1, stock_label="the optimum"
    ),
)
