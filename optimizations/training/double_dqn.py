# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Double DQN with the DQN of Stable-Baselines3, which can have illegal actions.

van Hasselt, Guez, Silver: "Deep Reinforcement Learning with Double Q-learning", AAAI
2016.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor

ILLEGAL = -1e9
"""The value of illegal actions."""


class DoubleDQN(DQN):
    """A DQN in which the trained network chooses the action of the target.

    `DQN.train` uses the maximum of the target network's values. Here, the target
    network returns only its value of the chosen action, so this is the maximum.
    """

    def _setup_model(self) -> None:
        super()._setup_model()
        self.q_net_target.register_forward_hook(self._value_of_chosen)

    def _value_of_chosen(self, _: object, inputs: Any, values: Tensor) -> Tensor:
        chosen = self.q_net(*inputs).argmax(dim=1, keepdim=True)
        return values.gather(1, chosen)

    def _sample_action(
        self, *arguments: Any, **named: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        actions, _ = super()._sample_action(*arguments, **named)
        # Random actions may be illegal. Replace them with other random actions.
        seen, _ = self.policy.obs_to_tensor(self._last_obs)  # type: ignore[arg-type]
        with torch.no_grad():
            legal = (self.q_net(seen) > ILLEGAL).cpu().numpy()
        for row, mask in enumerate(legal):
            if not mask[actions[row]]:
                actions[row] = self.action_space.sample(mask.astype(np.int8))
        return actions, actions


class _LegalValues(QNetwork):
    def forward(self, obs: Any) -> Tensor:
        encoder: Any = self.features_extractor
        values, legal = super().forward(obs), encoder.legal(obs)
        return values if legal is None else values.masked_fill(~legal, ILLEGAL)


class LegalPolicy(DQNPolicy):
    """A policy of `DoubleDQN` with an `OwnEncoder`, which knows the legal actions."""

    def make_q_net(self) -> QNetwork:
        """Makes a network that gives illegal actions the value `ILLEGAL`."""
        settings = self._update_features_extractor(self.net_args)
        return _LegalValues(**settings).to(self.device)
