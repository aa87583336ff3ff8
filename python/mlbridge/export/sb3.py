# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports PPO, A2C, DQN and ARS of Stable-Baselines3, with a VecNormalize."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.dqn.policies import DQNPolicy
from torch import Tensor, nn

from mlbridge.envs.spaces import Padded
from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.export.failures import reading
from mlbridge.export.features import FeatureSpec, features_of
from mlbridge.export.policy import (
    Normalisation,
    Policy,
    Port,
    Tensors,
    named_features,
    observe_padded,
    padded_ports,
    vector_port,
)
from mlbridge.export.pytorch import best_of_each, traced


def load(path: Path) -> BaseAlgorithm:
    """Loads a file that ``model.save()`` of PPO, A2C, DQN or ARS has written.

    The file is unpickled, which runs the code in it. Only load files that you trust.

    Raises:
        Malformed: the file cannot be loaded.
        Unsupported: another algorithm has written the file.
    """
    with reading(path, "what Stable-Baselines3 saved"):
        data, _, _ = load_from_zip_file(path, device="cpu", load_data=True)
        # Infer the algorithm from its settings, because the file does not name it.
        for algorithm, setting in (
            (PPO, "clip_range"),
            (DQN, "exploration_initial_eps"),
            (A2C, "gae_lambda"),
        ):
            if data is not None and setting in data:
                return algorithm.load(path, device="cpu")
        if data is not None and "n_delta" in data:
            from sb3_contrib import ARS

            return ARS.load(path, device="cpu")
    raise Unsupported(
        f"{path}: expected what Stable-Baselines3's PPO, A2C, DQN or ARS saved; for "
        "another algorithm, export its network (an nn.Module)"
    )


def load_statistics(path: Path) -> VecNormalize:
    """Loads a file from ``VecNormalize.save()``. The file is unpickled, as in `load`.

    Raises:
        InvalidArgument: the file does not contain a VecNormalize.
        Malformed: the file cannot be loaded.
    """
    with path.open("rb") as file, reading(path, "what VecNormalize.save() wrote"):
        found = pickle.load(file)
    if not isinstance(found, VecNormalize):
        raise InvalidArgument(
            f"{path}: expected what VecNormalize.save() wrote, found a "
            f"{type(found).__name__}"
        )
    return found


def policy_of(
    model: BaseAlgorithm,
    features: Sequence[FeatureSpec],
    *,
    statistics: VecNormalize | None = None,
) -> Policy:
    """Makes a policy from a trained algorithm.

    Features are matched by name if the observation space is a Dict. For any other
    space, they are joined to a vector. For a Discrete action space, the output is
    ``q_values`` (DQN) or ``logits``. PPO and A2C can also export ``value``. For other
    action spaces, the output is the ``action`` of ``predict(deterministic=True)``.

    Args:
        model: a PPO, A2C, DQN or ARS.
        features: the features. The default is the observation space.
        statistics: the VecNormalize used in training. The default is the VecNormalize
            of the model's environment, if there is one.

    Raises:
        SchemaMismatch: the features do not fit the observation space.
        Unsupported: the algorithm is unknown, its policy has ``squash_output``, or its
            observations are images that Stable-Baselines3 has transposed.
    """
    statistics = statistics or model.get_vec_normalize_env()
    assert model.observation_space is not None
    space: spaces.Space[Any] = model.observation_space
    ports = _ports(space, features, statistics, type(model).__name__)
    is_dict = isinstance(space, spaces.Dict)
    keys = [port.name for port in ports] if is_dict else None
    network, decide = _network(model, keys)
    limits = space.limits if isinstance(space, Padded) else {}

    def observation(tensors: Tensors) -> Any:
        raw = observe_padded(space, ports, tensors)
        found: Any = raw if is_dict else raw[ports[0].name]
        return statistics.normalize_obs(found) if statistics else found

    def prepare(tensors: Tensors) -> Mapping[str, NDArray[Any]]:
        found = observation(tensors)
        return found if is_dict else {ports[0].name: found}

    def act(tensors: Tensors) -> dict[str, NDArray[Any]]:
        actions, _ = model.predict(observation(tensors), deterministic=True)
        return {"action": actions.astype(model.action_space.dtype)}

    framework = f"stable-baselines3 {stable_baselines3.__version__}"
    policy = traced(network, ports, framework, prepare=prepare, limits=limits)
    if decide:
        return replace(policy, decide=decide, outputs=(decide.partition(":")[2],))
    return replace(policy, reply=act, outputs=("action",))


def _ports(
    space: spaces.Space[Any],
    features: Sequence[FeatureSpec],
    statistics: VecNormalize | None,
    what: str,
) -> list[Port]:
    if not isinstance(space, spaces.Dict):
        wanted = features_of(space)[0]
        normalise = _normalisation(statistics, None)
        chosen = features or [wanted]
        name, shape, dtype = "observation", wanted.shape, wanted.dtype
        # Do not one-hot encode categories, because the network does so.
        if len(chosen) == 1 and chosen[0].size == wanted.size:
            return [Port(name, (chosen[0],), dtype, shape, normalise=normalise)]
        return [vector_port(name, chosen, shape, dtype, normalise=normalise, what=what)]
    wanted_by_name = features_of(space)
    chosen = named_features(features, wanted_by_name, what)
    if isinstance(space, Padded):
        if statistics:
            raise Unsupported("a VecNormalize of observations of changing size")
        return padded_ports(chosen)
    pairs = zip(chosen, wanted_by_name, strict=True)
    normalised = {w.name: _normalisation(statistics, w.name) for w in wanted_by_name}
    return [
        Port(w.name, (f,), w.dtype, w.shape, normalise=normalised[w.name])
        for f, w in pairs
    ]


def _normalisation(
    statistics: VecNormalize | None, key: str | None
) -> Normalisation | None:
    """Returns how VecNormalize changes the observation, or only its part `key`."""
    if statistics is None or not statistics.norm_obs:
        return None
    found: Any = statistics.obs_rms
    if key is not None:
        if key not in (statistics.norm_obs_keys or []):
            return None
        found = found[key]
    scale = np.sqrt(found.var + statistics.epsilon)
    single = np.dtype(np.float32)
    return Normalisation(found.mean, scale, statistics.clip_obs, single)


def _network(
    model: BaseAlgorithm, keys: list[str] | None
) -> tuple[nn.Module, str | None]:
    policy: Any = model.policy
    policy.set_training_mode(False)
    if isinstance(policy, DQNPolicy):
        return _QValues(policy, keys).eval(), "argmax:q_values"
    is_ars = any(base.__name__ == "ARSPolicy" for base in type(policy).__mro__)
    if is_ars and isinstance(model.action_space, spaces.Discrete):
        return _ARSLogits(policy, keys).eval(), "argmax:logits"
    if type(policy).__name__.startswith("Recurrent") or not isinstance(
        policy, ActorCriticPolicy
    ):
        raise Unsupported(
            f"{type(model).__name__} with a {type(policy).__name__}: expected PPO, "
            "A2C, DQN, or ARS with discrete actions; export the network (an nn.Module) "
            "itself"
        )
    if isinstance(policy.action_dist, CategoricalDistribution):
        return _Logits(policy, keys).eval(), "argmax:logits"
    # Refuse squash_output, because `predict` scales its actions outside the network.
    if policy.squash_output:
        raise Unsupported(
            "a policy with squash_output: export the network (an nn.Module) itself"
        )
    return _Action(policy, keys, model.action_space).eval(), None


class _Network(nn.Module):
    """A policy's network with one argument for each tensor of the observation."""

    def __init__(self, policy: Any, keys: list[str] | None) -> None:
        super().__init__()
        self.policy = policy
        self.keys = keys

    def _observation(self, tensors: tuple[Tensor, ...]) -> Any:
        if self.keys is None:
            return tensors[0]
        return dict(zip(self.keys, tensors, strict=True))


class _QValues(_Network):
    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        return {"q_values": self.policy.q_net(self._observation(tensors))}


class _ARSLogits(_Network):
    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        policy = self.policy
        seen = self._observation(tensors)
        found = policy.extract_features(seen, policy.features_extractor)
        return {"logits": policy.action_net(found)}


class _Logits(_Network):
    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        policy = self.policy
        found = policy.extract_features(self._observation(tensors))
        if policy.share_features_extractor:
            for_actions, for_values = policy.mlp_extractor(found)
        else:
            for_actions = policy.mlp_extractor.forward_actor(found[0])
            for_values = policy.mlp_extractor.forward_critic(found[1])
        return {
            "logits": policy.action_net(for_actions),
            "value": policy.value_net(for_values),
        }


class _Action(_Network):
    """A network that computes actions of spaces for which one argmax is not enough."""

    def __init__(self, policy: Any, keys: list[str] | None, space: Any) -> None:
        super().__init__(policy, keys)
        self.parts: list[int] | None = None
        self.low: Tensor
        self.high: Tensor
        self.is_binary = isinstance(space, spaces.MultiBinary)
        if isinstance(space, spaces.MultiDiscrete):
            self.parts = [int(n) for n in space.nvec]
        elif isinstance(space, spaces.Box):
            self.register_buffer("low", torch.from_numpy(space.low))
            self.register_buffer("high", torch.from_numpy(space.high))

    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        policy = self.policy
        found = policy.extract_features(
            self._observation(tensors), policy.pi_features_extractor
        )
        chosen = policy.action_net(policy.mlp_extractor.forward_actor(found))
        if self.is_binary:
            return {"action": (chosen > 0).to(torch.int8)}
        if self.parts is not None:
            return {"action": best_of_each(chosen, self.parts)}
        return {"action": torch.clamp(chosen, self.low, self.high)}
