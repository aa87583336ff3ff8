# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of the agents that distribute a loop step by step.

A seed is a node that the agents assign to a loop. The network's inputs for a seed are
the seed's features, their sum over all nodes, and their sum over the current loop.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .networks import NODE_COLUMNS

HIDDEN = 32


class AgentNetwork(nn.Module):
    """Maps observations to logits [N, actions] and values [N, 1].

    Args:
        actions: the number of actions, or None if each seed is an action.
    """

    def __init__(self, actions: int | None) -> None:
        super().__init__()
        self.actions = actions
        inputs = 3 * NODE_COLUMNS
        self.score = nn.Sequential(
            nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, actions or 1)
        )
        self.value = nn.Sequential(
            nn.Linear(2 * NODE_COLUMNS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)
        )

    def forward(self, observation: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns logits and values. An illegal action's logit is -1e9."""
        nodes = observation["nodes"]
        loop_of = observation["loop_of"].to(torch.int64)
        if "nodes_mask" in observation:  # Padding has no loop.
            loop_of = torch.where(observation["nodes_mask"] > 0, loop_of, -1)
        current = loop_of.amax(dim=1, keepdim=True)
        inside = ((loop_of == current) & (loop_of >= 0)).to(nodes.dtype)
        whole = nodes.sum(dim=1)
        part = (nodes * inside.unsqueeze(2)).sum(dim=1)
        context = torch.cat([whole, part], dim=1)
        if self.actions is None:
            index = observation["seeds"].to(torch.int64)
        else:
            index = observation["node"].to(torch.int64).reshape(-1, 1)
        numbers = torch.arange(nodes.shape[1], device=nodes.device)
        rows = (index.unsqueeze(2) == numbers).to(nodes.dtype) @ nodes
        each = context.unsqueeze(1).expand(-1, rows.shape[1], -1)
        scores = self.score(torch.cat([rows, each], dim=2))
        logits = scores.squeeze(2) if self.actions is None else scores.squeeze(1)
        legal = observation["action_mask"] > 0
        masked = torch.where(legal, logits, torch.full_like(logits, -1e9))
        return masked, self.value(context)
