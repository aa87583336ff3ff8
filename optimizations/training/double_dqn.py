# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Double DQN with the DQN of Stable-Baselines3.

van Hasselt, Guez, Silver: "Deep Reinforcement Learning with Double Q-learning", AAAI
2016.
"""

from typing import Any

from stable_baselines3 import DQN
from torch import Tensor


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
