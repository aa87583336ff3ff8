# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An evolution strategy: augmented random search (ARS) from sb3-contrib.

Mania, Guy, Recht: "Simple random search of static linear policies is competitive for
reinforcement learning", NeurIPS 2018.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from gymnasium import spaces
from sb3_contrib import ARS
from sb3_contrib.ars.policies import ARSPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
)
from torch import nn

from mlbridge_optimizations.training.networks import OwnEncoder


class EvolvedPolicy(ARSPolicy):
    """The policy of ARS with an encoder, for any observation space."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        make: Callable[[Any], nn.Module] | None = None,
        **settings: Any,
    ) -> None:
        self._make = make
        super().__init__(observation_space, action_space, **settings)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """Makes the optimisation's encoder, or Stable-Baselines3's default encoder."""
        space = self.observation_space
        if self._make is not None:
            return OwnEncoder(space, self._make)
        if isinstance(space, spaces.Dict):
            return CombinedExtractor(space)
        return FlattenExtractor(space)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "make": self._make}


class Evolution(ARS):
    """ARS that calls callbacks at the end of each episode.

    ARS's defaults are for linear policies, whose weights start at zero. The weights of
    this network start at random values, so larger changes are needed to change an
    action.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": EvolvedPolicy,
        "MultiInputPolicy": EvolvedPolicy,
    }

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings = {"zero_policy": False, "delta_std": 0.3, **settings}
        super().__init__(*arguments, **settings)

    def _trigger_callback(
        self,
        _locals: dict[str, Any],
        _globals: dict[str, Any],
        callback: BaseCallback,
        n_envs: int,
    ) -> None:
        self.num_timesteps += 1
        callback.update_locals({"infos": [_locals["info"]]})
        callback.on_step()
