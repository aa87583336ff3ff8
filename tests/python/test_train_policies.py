# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the training of policies for phase ordering, at small scale."""

import json
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

import torch
from gymnasium import Env, spaces
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

from core_sets import SMALL, modules
from mlbridge.envs import CompilerEnv
from mlbridge.errors import InvalidArgument, Timeout, Unsupported
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.optimization import MODEL, NoSettings, Optimization
from mlbridge_optimizations.phase_ordering.environment import environment
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace
from mlbridge_optimizations.phase_ordering.environment.compiler import (
    EpisodeOptions,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.model.model import Model
from mlbridge_optimizations.phase_ordering.model.networks import Once
from mlbridge_optimizations.phase_ordering.model.training import (
    ONCE,
    PhaseOrderingSettings,
)
from mlbridge_optimizations.phase_ordering.optimization import OPTIMIZATION
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.credits import Credits
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.double_dqn import ILLEGAL
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings
from programs import FULL, run_cli


@pytest.fixture
def experiment(small_corpus: Path, tmp_path: Path) -> Experiment:
    environment = PhaseOrderingSettings(
        small_corpus, observation="histogram,step", episode=4, max_instructions=SMALL
    )
    settings = TrainingSettings(
        tmp_path / "out", steps=96, rollout=32, every=40, hidden="16"
    )
    return Experiment(OPTIMIZATION, environment, settings)


def curve_of(experiment: Experiment) -> Curve:
    """Checks the files of a training, and returns its curve."""
    out = experiment.settings.out
    curve = Curve(OPTIMIZATION.metric).load(out / "curve.csv")
    assert curve.steps
    assert all(0.5 < ratio < 5 for ratio in curve.values)
    for name in ("curve.png", "settings.json", "tensorboard"):
        assert (out / name).exists(), name
    return curve


@pytest.mark.parametrize("algo", ["ppo", "a2c", "dqn"])
def test_sb3_trains_and_exports(experiment: Experiment, algo: str) -> None:
    experiment = experiment.changed(algo=algo, workers=2)
    exported = policy.train(experiment)[MODEL]
    curve_of(experiment)
    model = Model(exported.path)
    assert model.task.steps == 4
    assert exported.decide == f"argmax:{'q_values' if algo == 'dqn' else 'logits'}"
    about = json.loads(exported.path.with_name("settings.json").read_text())
    assert about["algo"] == algo
    options = EpisodeOptions(observation=model.features, reward="none", steps=4)
    with SequenceRunner(options) as runner:
        module = modules(experiment.environment.corpus)[0]
        sequences = model.choices(runner, module, 3, seed=1)
        assert sequences == model.choices(runner, module, 3, seed=1)
    for sequence in sequences:
        assert not isinstance(sequence, SequenceFailed)
        assert len(sequence) == 4


def test_dqn_is_double(experiment: Experiment, tmp_path: Path) -> None:
    wanted = experiment.changed(algo="dqn", steps=8)
    trained: Any = policy.learn(wanted).policies[MODEL]
    trained.save(tmp_path / "saved.zip")
    state = np.zeros((1, *trained.observation_space.shape), np.float32)
    for model in (trained, type(trained).load(tmp_path / "saved.zip")):
        # The trained network prefers action 1, and the target network action 0.
        for network, first, second in ((model.q_net, 0, 1), (model.q_net_target, 9, 5)):
            last = network.q_net[-1]
            torch.nn.init.zeros_(last.weight)
            torch.nn.init.zeros_(last.bias)
            last.bias.data[:2] = torch.tensor([first, second])
        model.set_logger(Logger(folder=None, output_formats=[]))
        model.replay_buffer.reset()
        one = (np.zeros((1, 1)), np.ones(1), np.zeros(1))
        model.replay_buffer.add(state, state, *one, [{}])
        model.train(1)
        loss = 1 + model.gamma * 5 - 0 - 0.5  # Huber's loss
        assert model.logger.name_to_value["train/loss"] == pytest.approx(loss)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_agent_takes_each_action_once(experiment: Experiment, workers: int) -> None:
    wanted = replace(
        experiment.changed(algo="dqn", workers=workers, epsilon=0.5),
        optimization=ONCE,
        environment=replace(experiment.environment, observation="step,actions"),
    )
    exported = policy.train(wanted)[MODEL]
    with (wanted.settings.out / "replay.pkl").open("rb") as file:
        seen = pickle.load(file).next_observations
    count = len(ActionSpace.load("oz").actions)
    taken = seen[: wanted.settings.steps // workers, :, 1 : 1 + count]
    assert taken.sum(axis=2).max() == 4
    assert taken.max() == 1
    scores = Model(exported.path).scores(
        {"step": np.ones(1, np.float32), "actions": np.eye(2 * count, dtype="f")[3]}
    )
    assert np.flatnonzero(scores <= ILLEGAL).tolist() == [3]


def test_an_agent_needs_an_action_for_each_step() -> None:
    for widths, steps in (({"actions": 8}, 5), ({"step": 1}, 1)):
        with pytest.raises(InvalidArgument, match="at least"):
            Once(widths, steps)


def test_with_one_worker_the_same_seed_gives_the_same_curve(
    experiment: Experiment, tmp_path: Path
) -> None:
    curves = []
    for number, seed in enumerate((1, 1, 2)):
        wanted = experiment.changed(seed=seed, out=tmp_path / str(number), steps=64)
        curve = policy.learn(wanted).curve
        curves.append((curve.steps, curve.returns, curve.values))
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_training_goes_on_where_it_was(experiment: Experiment, algo: str) -> None:
    experiment = experiment.changed(algo=algo)
    with pytest.raises(InvalidArgument, match="to resume from"):
        policy.learn(experiment, resume=True)
    policy.learn(experiment.changed(steps=64))
    curve = policy.learn(experiment.changed(steps=128), resume=True).curve
    assert curve.steps[0] <= 8
    assert curve.steps == sorted(set(curve.steps))
    assert curve.steps[-1] >= 124


def test_a_training_goes_on_with_its_own_settings(experiment: Experiment) -> None:
    experiment.save()
    experiment.changed(steps=999, every=9).check()
    replace(experiment, environment=replace(experiment.environment)).check()
    other = replace(
        experiment.changed(seed=5),
        environment=replace(experiment.environment, episode=9),
    )
    with pytest.raises(InvalidArgument, match="seed: 0 then, 5 now") as caught:
        policy.learn(other, resume=True)
    assert "environment" in str(caught.value)
    assert "steps: 96" not in str(caught.value)
    # Replace the settings that `--tune` has found.
    tuned = experiment.changed(hidden="7,7", gamma=0.5, learning_rate=1e-3)
    tuned.save()
    assert experiment.as_begun(["hidden", "gamma", "learning_rate"]) == tuned


def test_a_training_remembers_its_modules(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = experiment.make_env()
    files = [file for program in env.programs for file in program]
    assert len(files) > 8
    assert env.options.kept_programs == len(files)
    assert f"-mlbridge-phase-ordering-programs={len(files)}" in env.options.command()
    size = sum(file.stat().st_size for file in files)
    monkeypatch.setattr(environment, "KEPT_BITCODE", size // 4)
    assert experiment.make_env().options.kept_programs == len(files) // 4
    three = replace(experiment.environment, kept_programs=3)
    env = replace(experiment, environment=three).make_env()
    assert env.options.kept_programs == 3


@pytest.mark.parametrize(
    ("engine", "algo", "actions"),
    [
        ("rllib", "ppo", spaces.Box(0, 1, (2,))),
        ("sb3", "ars", spaces.Box(0, 1, (2,))),
        ("sb3", "ars", spaces.MultiDiscrete([2, 3])),
    ],
)
def test_what_could_not_be_exported_is_not_learned(
    tmp_path: Path, engine: str, algo: str, actions: spaces.Space[Any]
) -> None:
    def make_env(settings: NoSettings, worker: int) -> CompilerEnv:
        return CompilerEnv(["none"], observation_space=seen, action_space=actions)

    seen = spaces.Box(0, 1, (3,))
    settings = TrainingSettings(tmp_path, engine=engine, algo=algo, steps=1)
    wanted = Experiment(Optimization("tea", "", make_env), NoSettings(), settings)
    refused = f"{algo} of {engine} .* --engine sb3 --algo ppo or a2c"
    with pytest.raises(Unsupported, match=refused):
        wanted.networks(seen, actions)
    if engine == "sb3":
        with pytest.raises(Unsupported, match=refused):
            policy.train(wanted)
    wanted.changed(engine="sb3", algo="a2c").networks(seen, actions)


@pytest.fixture
def rllib() -> Any:
    pytest.importorskip("ray", reason="needs scripts/make-venv train")
    return import_module("mlbridge_optimizations.training.rllib")


@pytest.fixture
def ray_here(rllib: Any) -> Iterator[None]:
    with rllib.cluster(3, None):
        yield


RAY = pytest.mark.filterwarnings("ignore")
"""Ray and RLlib emit warnings about themselves."""


# test_training.py checks that RLlib learns, with the example's compiler.
@RAY
@FULL
@pytest.mark.parametrize("algo", ["ppo", "dqn", "appo"])
def test_rllib_makes_a_model(experiment: Experiment, ray_here: None, algo: str) -> None:
    experiment = experiment.changed(engine="rllib", algo=algo, steps=64)
    exported = policy.train(experiment)[MODEL]
    curve = curve_of(experiment)
    assert Model(exported.path).task.steps == 4
    # Training resumes, and ignores a checkpoint whose writing was interrupted.
    out = experiment.settings.out
    for is_cut_off in (False, True):
        if is_cut_off:
            (out / "checkpoint.new").mkdir()
            (out / "checkpoint").rename(out / "checkpoint.old")
        more = experiment.changed(steps=curve.steps[-1] + 16)
        longer = policy.learn(more, resume=True).curve
        assert longer.steps[: len(curve.steps)] == curve.steps
        assert longer.steps[-1] > curve.steps[-1]
        curve = longer
    assert sorted(path.name for path in out.glob("checkpoint*")) == ["checkpoint"]


def learn_by(rllib: Any, algorithm: Any, experiment: Experiment, steps: int) -> None:
    """Runs this project's loop around RLlib with a fake algorithm."""
    settings = experiment.settings
    checkpoint = rllib._Checkpoint(settings.out / "checkpoint")
    rllib._learn(algorithm, settings, Curve(), steps, checkpoint, lambda *_: None)


@pytest.mark.parametrize("hangs", [True, False])
def test_rllib_gives_up_where_no_action_comes(
    experiment: Experiment, rllib: Any, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    class Stalled:
        """Acts like RLlib with hung compilers: waits, or returns the same count."""

        ended = threading.Event()

        def train(self) -> dict[str, Any]:
            if hangs:
                self.ended.wait(60)
            return {"env_runners": {"num_env_steps_sampled_lifetime": 7}}

    monkeypatch.setattr(rllib, "STALLED", 0.3)
    start = time.monotonic()
    with pytest.raises(Timeout, match="after 7 actions: no compiler gets as far"):
        learn_by(rllib, Stalled(), experiment, 7)
    assert time.monotonic() - start < 30
    Stalled.ended.set()


def test_an_error_in_an_iteration_is_raised(experiment: Experiment, rllib: Any) -> None:
    broken = Mock(train=Mock(side_effect=TimeoutError("of its own")))
    with pytest.raises(TimeoutError, match="of its own"):
        learn_by(rllib, broken, experiment, 0)


@FULL
@RAY
def test_rllib_on_a_cluster_of_two_nodes(experiment: Experiment) -> None:
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    nodes: Any = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20},
    )
    try:
        nodes.add_node(num_cpus=2, object_store_memory=100 << 20)
        wanted = experiment.changed(engine="rllib", algo="ppo", workers=2)
        policy.learn(wanted, address=nodes.address)
        curve_of(wanted)
    finally:
        nodes.shutdown()


POLICY = ("train", "phase-ordering")
ACTIONS = ("search", "phase-ordering-actions")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((*POLICY, "--engine", "best"), "no algorithm 'ppo' of 'best'"),
        ((*POLICY, "--algo", "appo"), "rllib: ppo, dqn, appo"),
        ((*POLICY, "--hidden", "12,x"), "--hidden: expected sizes of layers"),
        ((*POLICY, "--address", "here:1"), "for --engine rllib"),
        ((*POLICY, "--resume", "--tune", "2"), "leave that"),
        ((*POLICY, "--observation", "histogram,colour"), "found 'colour'"),
        ((*POLICY, "--observation", "embedding"), "need each other"),
        ((*POLICY, "--actions", "nothing"), "action space 'nothing'"),
        ((*ACTIONS, "--observation", "embedding"), "need each other"),
        ((*ACTIONS, "--observation", "step"), "before the first action"),
        ((*ACTIONS, "--observation", "counts", "--ahead", "2"), "leave it"),
        ((*ACTIONS, "--actions", "nothing"), "action space 'nothing'"),
    ],
)
def test_what_is_asked_for_is_checked_first(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    folders = ("--corpus", tmp_path / "none", "--out", tmp_path / "out")
    with pytest.raises(InvalidArgument, match=problem):
        run_cli(*arguments, *folders)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((*POLICY, "--count", "50"), "--count"),
        ((*ACTIONS, "--learning-rate", "0.1"), "--learning-rate"),
        ((*ACTIONS, "--joint-modules", "9"), "--joint-modules"),
        (("search", "phase-ordering-pipelines", "--episode", "9"), "--episode"),
    ],
)
def test_what_a_command_has_no_use_for_is_none_of_its_options(
    arguments: tuple[str, ...], option: str
) -> None:
    said = run_cli(*arguments, status=2)
    assert f"No such option: {option}" in " ".join(said.split())


def test_packages_are_looked_for_first() -> None:
    need("this", ("json", "numpy"))
    with pytest.raises(Unsupported, match=r"no_such_p.*'\./optimizations\[train\]'"):
        need("this", ("json", "no_such_package"))


class Credited(Env[int, int]):
    """An environment of three actions, whose rewards are known at the end."""

    observation_space: spaces.Space[Any] = spaces.Discrete(4)
    action_space: spaces.Space[Any] = spaces.Discrete(2)

    def reset(self, **arguments: Any) -> tuple[int, dict[str, Any]]:
        super().reset(**arguments)
        self.taken = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.taken += 1
        if self.taken < 3:
            return self.taken, 0.0, False, False, {}
        return 3, 10.0, True, False, {"credits": [1.0, 2.0, 3.0]}


def test_credits_replace_rewards() -> None:
    """The last action gets the rest of the return, so that the sum stays the same."""
    model = PPO("MlpPolicy", Credited(), n_steps=8, batch_size=8, gamma=1, gae_lambda=1)
    model.learn(16, callback=Credits())
    # The second rollout begins with the last action of the third episode.
    rewards = [7, 1, 2, 7, 1, 2, 7, 0]
    assert model.rollout_buffer.rewards.reshape(-1).tolist() == rewards
    returns = model.rollout_buffer.returns.reshape(-1).tolist()
    assert returns[:7] == pytest.approx([7, 10, 9, 7, 10, 9, 7])
