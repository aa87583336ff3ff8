# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports an RLModule of RLlib.

If the module comes from an algorithm, also exports the algorithm's connectors.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
from gymnasium import spaces
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.connectors.common import flatten_observations
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.env_to_module import EnvToModulePipeline
from ray.rllib.connectors.env_to_module.mean_std_filter import MeanStdFilter
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.numpy import SMALL_NUMBER, flatten_inputs_to_1d_tensor
from torch import Tensor, nn

from mlbridge.envs.spaces import Padded, leaves
from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.export.features import FeatureSpec, features_of
from mlbridge.export.policy import (
    Normalisation,
    Policy,
    Port,
    Tensors,
    named_features,
    observe,
    observe_padded,
    padded_ports,
    vector_port,
)
from mlbridge.export.pytorch import best_of_each, traced

# Connectors to ignore, because they batch observations without changing them.
_PLUMBING = {
    "AddObservationsFromEpisodesToBatch",
    "AddStatesFromEpisodesToBatch",
    "AddTimeDimToBatchAndZeroPad",
    "AgentToModuleMapping",
    "BatchIndividualItems",
    "NumpyToTensor",
    "WriteObservationsToEpisodes",
}

_COMPOSITE = (spaces.Dict, spaces.Tuple)


@dataclass(frozen=True)
class Trained:
    """An RLModule, and the connectors that process its observations."""

    module: RLModule
    connectors: Sequence[ConnectorV2] = ()
    space: spaces.Space[Any] | None = None
    """The environment's observation space. For several agents, a Dict with agents as
    keys."""
    name: str = ""


def load(path: Path, module: str | None = None) -> Trained:
    """Loads a module from a checkpoint of an algorithm, MultiRLModule or RLModule.

    The files are unpickled, which runs the code in them. Only load trusted files.

    Raises:
        InvalidArgument: `module` is unknown, or is None although there are several
            modules.
    """
    path = path.resolve()
    modules = path / "learner_group" / "learner" / "rl_module"
    if not modules.is_dir():
        found: Any = RLModule.from_checkpoint(path)
        return _choose(found, module, str(path))
    names = sorted(folder.name for folder in modules.iterdir() if folder.is_dir())
    name = _name(names, module, str(path))
    pipeline: Any = EnvToModulePipeline.from_checkpoint(
        path / "env_runner" / "env_to_module_connector"
    )
    return Trained(
        RLModule.from_checkpoint(modules / name),
        pipeline.connectors,
        pipeline.input_observation_space,
        name,
    )


def _choose(found: Any, module: str | None, what: str) -> Trained:
    if not isinstance(found, MultiRLModule):
        return Trained(found)
    name = _name(sorted(map(str, found.keys())), module, what)
    return Trained(found[name], name=name)


def _name(names: Sequence[str], wanted: str | None, what: str) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None or wanted not in names:
        problem = f"no module '{wanted}'" if wanted else "more than one module"
        raise InvalidArgument(
            f"{what} has {problem}: name one of {', '.join(names)} with module= "
            "(--module)"
        )
    return wanted


def policy_of(
    policy: Any,
    features: Sequence[FeatureSpec],
    *,
    module: str | None = None,
    agent: str | None = None,
) -> Policy:
    """Makes a policy from a module.

    The output is ``action`` for a MultiDiscrete action space. Otherwise it is
    ``q_values`` for a DQN and ``logits`` for other algorithms.

    Args:
        policy: an Algorithm, an RLModule, a MultiRLModule, or the result of `load`.
        features: the features. The default is the observation space. If the space is a
            Dict, the features are matched by name.
        module: the name of the module, if there are several.
        agent: the agent for which the module decides. The default is the module's name.

    Raises:
        InvalidArgument: `module` or `agent` is missing although there are several.
        SchemaMismatch: the features do not fit the observation space.
        Unsupported: a connector, the module or its action space cannot be exported.
    """
    trained = _trained(policy, module)
    inner: Any = trained.module
    if not isinstance(trained.module, TorchRLModule):
        raise Unsupported(f"expected a module of PyTorch, found {type(inner).__name__}")
    if inner.is_stateful():
        raise Unsupported(
            f"{type(inner).__name__} keeps a state between requests, but a compiler's "
            "requests are independent: train without memory (use_lstm=False)"
        )
    steps = _Observations(trained, agent)
    ports = steps.ports(features, type(inner).__name__)
    keys = [port.name for port in ports] if steps.are_named else None
    network = _Network(inner, keys).eval()
    prepare, framework = partial(steps.prepare, ports), f"ray {ray.__version__}"
    exported = traced(network, ports, framework, prepare=prepare, limits=steps.limits)
    is_one = isinstance(inner.action_space, spaces.Discrete)
    return replace(exported, decide=f"argmax:{network.scores}" if is_one else None)


def _trained(policy: Any, module: str | None) -> Trained:
    if isinstance(policy, Trained):
        return policy
    if not isinstance(policy, Algorithm):
        return _choose(policy, module, type(policy).__name__)
    # Save and load the algorithm, because saving merges the statistics of all workers.
    with tempfile.TemporaryDirectory(prefix="mlbridge-export-") as folder:
        policy.save_to_path(folder)
        return load(Path(folder), module)


class _Observations:
    """The processing of one agent's observations by the connectors."""

    def __init__(self, trained: Trained, agent: str | None) -> None:
        self._space, self._agent = _space_of_agent(trained, agent)
        self._flatten = False
        self._removed: frozenset[str] = frozenset()
        self._filters: list[Any] = []
        for connector in trained.connectors:
            self._add(connector)

    def _add(self, connector: ConnectorV2) -> None:
        name = type(connector).__name__
        if name in _PLUMBING:
            return
        found: Any = connector
        if isinstance(connector, flatten_observations.FlattenObservations):
            self._flatten = True
            self._removed = frozenset(found._keys_to_remove)
        elif isinstance(connector, MeanStdFilter):
            state = found.get_state()
            agent = self._agent if found._multi_agent else None
            if agent in state:
                self._filters.append(found._filters[agent])
            if isinstance(self._space, spaces.Dict) and not self._flatten:
                raise Unsupported(
                    "a MeanStdFilter of observations that are a Dict: put "
                    "FlattenObservations in front of it"
                )
        else:
            raise Unsupported(
                f"the connector {name} cannot be exported: move its processing of "
                "observations to the environment or to the module"
            )

    @property
    def are_named(self) -> bool:
        """Whether the module receives several tensors by name, rather than a vector."""
        return isinstance(self._space, spaces.Dict) and not self._flatten

    @property
    def limits(self) -> Mapping[str, int]:
        """Maps free extents to the sizes to which they are padded."""
        space = self._space
        return space.limits if self.are_named and isinstance(space, Padded) else {}

    def ports(self, features: Sequence[FeatureSpec], what: str) -> list[Port]:
        """Returns the inputs of the module: one vector, or several named tensors."""
        space: Any = self._space
        if self.are_named:
            if any(isinstance(part, _COMPOSITE) for part in space.spaces.values()):
                raise Unsupported(
                    f"{what}: expected a Dict of tensors, found other parts; make a "
                    "vector with FlattenObservations (env_to_module_connector)"
                )
            return padded_ports(named_features(features, features_of(space), what))
        if isinstance(space, _COMPOSITE) and not self._flatten:
            raise Unsupported(
                f"{what}: expected one tensor, found a {type(space).__name__}; make a "
                "vector with FlattenObservations (env_to_module_connector)"
            )
        wanted = [
            feature
            for feature in features_of(_in_order(space))
            if feature.name.partition(".")[0] not in self._removed
        ]
        if isinstance(space, _COMPOSITE):
            features = named_features(features, wanted, what)
        elif not features:
            features = wanted
        width = sum(feature.width for feature in wanted)
        shape = (width,) if self._flatten else wanted[0].shape
        dtype = np.dtype(np.float32) if self._flatten else wanted[0].dtype
        port = vector_port(Columns.OBS, features, shape, dtype, what=what)
        return [replace(port, normalise=self._normalisation(dtype))]

    def _normalisation(self, dtype: np.dtype[Any]) -> Normalisation | None:
        if not self._filters:
            return None
        if len(self._filters) > 1:
            raise Unsupported("more than one MeanStdFilter: leave one")
        (found,) = self._filters
        stats = found.running_stats
        shape = np.shape(stats.mean)
        mean = np.asarray(stats.mean) if found.demean else np.zeros(shape)
        scale = stats.std + SMALL_NUMBER if found.destd else np.ones(shape)
        return Normalisation(mean, np.asarray(scale), found.clip or None, dtype)

    def prepare(
        self, ports: Sequence[Port], features: Tensors
    ) -> Mapping[str, NDArray[Any]]:
        """Computes the module's inputs from features, with RLlib's functions."""
        if self.are_named:
            return observe_padded(self._space, ports, features)
        (port,) = ports
        if isinstance(self._space, _COMPOSITE):
            kinds = dict(leaves(self._space))
            names = [feature.name for feature in port.features]
            chosen = tuple(kinds[name] for name in names)
            values = tuple(
                features[name].reshape(-1, *(kinds[name].shape or ())) for name in names
            )
            row: Any = flatten_inputs_to_1d_tensor(values, chosen)
        else:
            row = observe(ports, features)[port.name]
        for found in self._filters:
            row = np.stack([found(one, update=False) for one in row])
        return {port.name: row}


def _in_order(space: Any) -> Any:
    """Sorts the keys of a space, because RLlib flattens in this order."""
    if not isinstance(space, spaces.Dict):
        return space
    # The constructor of Dict sorts the keys of a plain dict.
    return spaces.Dict({key: _in_order(part) for key, part in space.spaces.items()})


def _space_of_agent(
    trained: Trained, agent: str | None
) -> tuple[spaces.Space[Any], str | None]:
    """Returns the observation space of the module's agent, and the agent's name."""
    space = trained.space
    if space is None:
        found: Any = trained.module.observation_space
        return found, None
    is_several = any(
        getattr(connector, "_multi_agent", False)
        or type(connector).__name__ == "AgentToModuleMapping"
        for connector in trained.connectors
    )
    if not is_several:
        return space, None
    assert isinstance(space, spaces.Dict)
    names = list(space.spaces)
    chosen = agent or (trained.name if trained.name in names else None)
    if chosen is None and len(names) == 1:
        chosen = names[0]
    if chosen not in names:
        raise InvalidArgument(
            f"the module '{trained.name}' decides for one of the agents "
            f"{', '.join(names)}: name one with agent= (--agent)"
        )
    return space[chosen], chosen


class _Network(nn.Module):
    """A network that computes the logits, Q-values or action of a module."""

    def __init__(self, module: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__()
        self.module = module
        self.keys = keys
        self.is_dqn = hasattr(module, "compute_q_values")
        self.scores = "q_values" if self.is_dqn else "logits"
        space = module.action_space
        if isinstance(space, spaces.MultiDiscrete):
            self.parts: list[int] | None = [int(n) for n in space.nvec]
        elif isinstance(space, spaces.Discrete):
            self.parts = None
        else:
            raise Unsupported(
                f"an action space {space}: expected Discrete or MultiDiscrete; export "
                "an nn.Module that computes the action from the module's outputs"
            )

    def forward(self, *observed: Tensor) -> dict[str, Tensor]:
        batch: dict[str, Any] = {Columns.OBS: observed[0].float()}
        if self.keys is not None:
            batch = {Columns.OBS: dict(zip(self.keys, observed, strict=True))}
        if self.is_dqn:
            return {self.scores: self.module.compute_q_values(batch)["qf_preds"]}
        found = self.module.forward_inference(batch)
        if Columns.ACTION_DIST_INPUTS not in found:
            raise Unsupported(
                f"{type(self.module).__name__} returns {', '.join(found)}, but not "
                f"{Columns.ACTION_DIST_INPUTS}: export an nn.Module that computes the "
                "logits"
            )
        logits: Tensor = found[Columns.ACTION_DIST_INPUTS]
        if self.parts is None:
            return {self.scores: logits}
        return {"action": best_of_each(logits, self.parts)}
