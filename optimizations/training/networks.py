# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wraps an optimisation's own encoder and network for Stable-Baselines3."""

from collections.abc import Callable
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn


class OwnEncoder(BaseFeaturesExtractor):
    """An optimisation's own encoder."""

    def __init__(
        self, space: spaces.Space[Any], make: Callable[[Any], nn.Module]
    ) -> None:
        encoder: Any = make(space)
        super().__init__(space, encoder.out_features)
        self.encoder = encoder

    def forward(self, observations: Any) -> Tensor:
        """Maps a batch of observations to [N, out_features]."""
        encoded: Tensor = self.encoder(observations)
        return encoded

    def legal(self, observations: Any) -> Tensor | None:
        """Returns which actions are legal, [N, actions], or None if all are legal."""
        find = getattr(self.encoder, "legal", None)
        return None if find is None else find(observations)


class OwnNetwork(BaseFeaturesExtractor):
    """An optimisation's own network. Each row of its result has logits and a value."""

    def __init__(self, space: spaces.Space[Any], make: Callable[[], nn.Module]) -> None:
        super().__init__(space, 1)
        self.network = make()

    def forward(self, observations: Any) -> Tensor:
        """Maps a batch of observations to [N, actions + 1]."""
        return torch.cat(self.network(observations), dim=1)


class _Split(nn.Module):
    """Splits each row into logits and value."""

    def forward(self, row: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(row), self.forward_critic(row)

    def forward_actor(self, row: Tensor) -> Tensor:
        return row[:, :-1]

    def forward_critic(self, row: Tensor) -> Tensor:
        return row[:, -1:]


class OwnPolicy(ActorCriticPolicy):
    """A policy that has only the optimisation's own network."""

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor: Any = _Split()
        self.action_net = nn.Identity()
        self.value_net: Any = nn.Identity()
        self.optimizer = self.optimizer_class(
            self.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )
