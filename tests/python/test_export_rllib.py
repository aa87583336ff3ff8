# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of RLlib, exported from a checkpoint together with its connectors."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("ray", reason="needs scripts/make-venv train")
pytest.importorskip("onnxscript", reason="needs scripts/make-venv export")

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import (
    FlattenObservations,
    MeanStdFilter,
    PrevActionsPrevRewards,
)
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from exported import Guess, run
from mlbridge import InvalidArgument, SchemaMismatch, Unsupported
from mlbridge.export import export
from mlbridge.export.rllib import load

# Ignore all warnings, because Ray's threads warn, too.
pytestmark = pytest.mark.filterwarnings("ignore")

COUNT = 20
# RLlib flattens this space in the sorted order of the keys, which differs from the
# order here.
DICT = spaces.Dict(
    size=spaces.Box(0, 1000, (1,), np.int64),
    embedding=spaces.Box(-4, 4, (3,), np.float32),
    kind=spaces.Discrete(4),
)
ROW = spaces.Box(-3, 50, (4,), np.float32)
AGENTS: dict[str, spaces.Space[Any]] = {
    "node": ROW,
    "colour": spaces.Box(0, 1, (2,), np.float32),
}
ACTIONS: dict[str, spaces.Space[Any]] = {
    "node": spaces.Discrete(3),
    "colour": spaces.MultiDiscrete([2, 3]),
}


class Alone(Guess):
    def __init__(self, config: Any) -> None:
        super().__init__(config["space"], spaces.Discrete(4))


class InTurn(MultiAgentEnv):
    def __init__(self, config: Any = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.possible_agents = self.agents = list(AGENTS)
        self.observation_spaces = dict(AGENTS.items())
        self.action_spaces = dict(ACTIONS.items())

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self._steps = 0
        return {"node": AGENTS["node"].sample()}, {}

    def step(self, actions: Any) -> Any:
        self._steps += 1
        agent = "node" if "colour" in actions else "colour"
        over = {"__all__": self._steps >= 8}
        observation = {agent: AGENTS[agent].sample()}
        return observation, dict.fromkeys(actions, 1.0), over, {"__all__": False}, {}


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    ray.init(
        "local",  # Do not use the cluster of another test.
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 << 20,
    )
    yield
    ray.shutdown()


@contextmanager
def trained(
    environment: Any, connectors: Callable[[], Any], **env_config: Any
) -> Iterator[Any]:
    settings: Any = PPOConfig
    config = (
        settings()
        .environment(environment, env_config=env_config)
        .env_runners(
            num_env_runners=0,
            env_to_module_connector=lambda *args, **kwargs: connectors(),
        )
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .learners(num_learners=0)
        .debugging(seed=0, log_level="ERROR")
    )
    if environment is InTurn:
        config.multi_agent(
            policies=set(AGENTS),
            policy_mapping_fn=lambda agent, *args, **kwargs: agent,
        )
    algorithm = config.build_algo()
    try:
        algorithm.train()
        yield algorithm
    finally:
        algorithm.stop()


def asked_of_rllib(algorithm: Any, observation: Any, space: Any) -> Any:
    """Returns the logits for one observation, computed by RLlib's own pipeline."""
    episode = SingleAgentEpisode(
        observations=[observation],
        observation_space=space,
        action_space=spaces.Discrete(4),
    )
    module = algorithm.get_module()
    pipeline = algorithm.env_runner._env_to_module
    for connector in pipeline.connectors:
        if isinstance(connector, MeanStdFilter):
            connector._update_stats = False
    batch = pipeline(
        rl_module=module, episodes=[episode], batch={}, explore=False, shared_data={}
    )
    with torch.no_grad():
        found = module.forward_inference(batch)
    return found[Columns.ACTION_DIST_INPUTS].numpy()[0]


CASES: list[tuple[Any, Callable[[], Any]]] = [
    (DICT, lambda: [FlattenObservations(), MeanStdFilter()]),
    (ROW, lambda: [MeanStdFilter(clip_by_value=1.5)]),
]


@pytest.mark.parametrize(("space", "connectors"), CASES, ids=["dict", "row"])
def test_the_same_logits_as_its_pipeline(
    tmp_path: Path, space: Any, connectors: Callable[[], Any]
) -> None:
    with trained(Alone, connectors, space=space) as algorithm:
        algorithm.save_to_path(str(tmp_path / "checkpoint"))
        policy = load(tmp_path / "checkpoint")
        done = export(policy, tmp_path / "m.onnx", framework="rllib")
        assert (done.outputs, done.decide) == (("logits",), "argmax:logits")
        space.seed(2)
        for _ in range(COUNT):
            one = space.sample()
            named = one if isinstance(space, spaces.Dict) else {"observation": one}
            asked = {name: np.asarray(value)[None] for name, value in named.items()}
            expected = asked_of_rllib(algorithm, one, space)
            found = run(done.path, asked)["logits"][0]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

        # Export the algorithm itself, with the compiler's own features.
        same = tmp_path / "n.onnx"
        if space is ROW:
            export(algorithm, same, features=["int64 a", "float[2] b", "bool c"])
            return
        given = ["int32 kind", "double[3] embedding", "int64[1] size"]
        again = export(algorithm, same, features=given)
        assert [f.name for f in again.features] == ["embedding", "kind", "size"]
        asked["kind"] = asked["kind"].astype(np.int32)
        asked["embedding"] = asked["embedding"].astype(np.float64)
        np.testing.assert_allclose(run(same, asked)["logits"][0], found, atol=1e-6)
        says = "missing: kind, size; unused: kid"
        with pytest.raises(SchemaMismatch, match=says):
            export(algorithm, same, features=["float[3] embedding", "float kid"])


def test_one_of_several_modules(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    with trained(InTurn, lambda: [MeanStdFilter(multi_agent=True)]) as algorithm:
        algorithm.save_to_path(str(checkpoint))
        filters = algorithm.env_runner._env_to_module.connectors[0]._filters
        modules = {name: algorithm.get_module(name) for name in AGENTS}
    says = "more than one module: name one of colour"
    with pytest.raises(InvalidArgument, match=says):
        load(checkpoint)
    says = "no module 'clour': name one of colour, n"
    with pytest.raises(InvalidArgument, match=says):
        load(checkpoint, "clour")
    for name, space in AGENTS.items():
        policy = load(checkpoint, name)
        done = export(policy, tmp_path / f"{name}.onnx", framework="rllib")
        space.seed(1)
        rows = np.stack([space.sample() for _ in range(COUNT)])
        seen = np.stack([filters[name](row, update=False) for row in rows])
        with torch.no_grad():
            batch = {Columns.OBS: torch.from_numpy(seen)}
            logits = modules[name].forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
        found = run(done.path, {"observation": rows})
        if name == "node":
            np.testing.assert_allclose(found["logits"], logits, rtol=1e-4, atol=1e-5)
            continue
        parts = [part.argmax(dim=1) for part in torch.split(logits, [2, 3], dim=1)]
        assert (done.outputs, done.decide) == (("action",), None)
        np.testing.assert_array_equal(found["action"], torch.stack(parts, dim=1))


def test_connectors_that_nothing_is_known_of(tmp_path: Path) -> None:
    unknown = [PrevActionsPrevRewards(), FlattenObservations()]
    with (
        trained(Alone, lambda: unknown, space=ROW) as algorithm,
        pytest.raises(Unsupported, match=r"PrevActionsPrev.* to the environment"),
    ):
        export(algorithm, tmp_path / "m.onnx")
