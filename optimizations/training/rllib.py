# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learning a policy by RLlib: double DQN, PPO and APPO, here or on a Ray cluster."""

import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Before Ray is imported: it reports to nobody.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import cloudpickle as pickle
import ray
import ray.cloudpickle
import torch
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.dqn.dqn_catalog import DQNCatalog
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.models.base import ENCODER_OUT, Encoder
from ray.rllib.core.models.configs import ModelConfig
from ray.rllib.core.models.torch.base import TorchModel
from ray.rllib.core.rl_module.apis import TARGET_NETWORK_ACTION_DIST_INPUTS
from ray.rllib.core.rl_module.apis.target_network_api import TargetNetworkAPI
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.tune.registry import register_env

from mlbridge.errors import Error, InvalidArgument, Malformed, Timeout, error_for
from mlbridge_optimizations.optimization import Metric, merged, spaces_of
from mlbridge_optimizations.training.curve import Curve, Show
from mlbridge_optimizations.training.experiment import MODEL, Experiment, Learned
from mlbridge_optimizations.training.settings import TrainingSettings

STALLED = 1800.0
"""Seconds without the actions of one iteration: a training is given up then."""

_STEPS = "steps"
_NAME = "mlbridge-training"


@contextmanager
def cluster(cpus: int, address: str | None) -> Iterator[None]:
    """The Ray cluster at an address, or a small one of our own that is gone afterwards.

    The nodes of a cluster need these packages, and what the environment names, at the
    same paths as here.
    """
    if ray.is_initialized():
        yield
        return
    # What Ray starts has to find what was found here.
    path = os.pathsep.join(filter(None, sys.path))
    settings: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"env_vars": {"PYTHONPATH": path}},
    }
    folder = None
    if address is None:
        folder = tempfile.mkdtemp(prefix="ray-")
        settings |= {
            "num_cpus": cpus,
            "include_dashboard": False,
            "object_store_memory": 150 << 20,
            "_temp_dir": folder,
        }
    else:
        settings["address"] = address
    # As for the file of an optimisation: see `registry`.
    for name in pickle.list_registry_pickle_by_value():
        by_value: Any = ray.cloudpickle.register_pickle_by_value
        by_value(sys.modules[name])
    # RLlib's notes on its own versions are for those who write programs for it.
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    ray.init(**settings)
    try:
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


class _Episodes(RLlibCallback):
    """Reports each episode as it ends."""

    metric = Metric()

    def __init__(self) -> None:
        super().__init__()
        # An episode is cut where a rollout ends, and then knows its last part only.
        self._before: dict[str, float] = {}

    def on_sample_end(self, **kwargs: Any) -> None:
        """Notes what the episodes have that go on in the next rollout."""
        for episode in kwargs["samples"]:
            if isinstance(episode, SingleAgentEpisode) and not episode.is_done:
                before = self._before.get(episode.id_, 0.0)
                self._before[episode.id_] = before + float(episode.get_return())

    def on_episode_end(self, **kwargs: Any) -> None:
        """Reports its return, and the metric."""
        episode, log = kwargs["episode"], kwargs["metrics_logger"]
        info = episode.get_infos(-1)
        if isinstance(episode, MultiAgentEpisode):
            info = merged(info)
        before = self._before.pop(episode.id_, 0.0)
        if "error" not in info:
            total = before + float(episode.get_return())
            value = type(self).metric.of(total, info)
            log.log_value("returns", total, reduce="item_series")
            log.log_value("values", value, reduce="item_series")


class _EncoderConfig(ModelConfig):
    """RLlib's way to have a network begin with what an optimisation has."""

    def __init__(self, make: Callable[[Any], Any], space: Any) -> None:
        super().__init__()
        self.make, self.space = make, space

    @property
    def output_dims(self) -> tuple[int]:
        """The width of what comes out."""
        return (int(self.make(self.space).out_features),)

    def build(self, framework: str = "torch") -> "_Encoder":
        """The module."""
        return _Encoder(self)


class _Encoder(TorchModel, Encoder):  # type: ignore[no-untyped-call]
    def __init__(self, config: _EncoderConfig) -> None:
        super().__init__(config)
        self.encoder = config.make(config.space)

    def _forward(self, input_dict: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {ENCODER_OUT: self.encoder(input_dict[Columns.OBS])}


_ENCODER = "mlbridge_encoder"


class _OwnEncoder:
    """A catalog's networks begin with what the configuration of the module has."""

    @classmethod
    def _get_encoder_config(
        cls,
        observation_space: Any,
        model_config_dict: dict[str, Any],
        *_: Any,
        **__: Any,
    ) -> _EncoderConfig:
        return _EncoderConfig(model_config_dict[_ENCODER], observation_space)


class PPOCatalogWithEncoder(_OwnEncoder, PPOCatalog):
    """Of PPO and APPO."""


class DQNCatalogWithEncoder(_OwnEncoder, DQNCatalog):
    """Of DQN."""


class _OwnModule(TorchRLModule, ValueFunctionAPI, TargetNetworkAPI):
    """A module that is an optimisation's own network."""

    def setup(self) -> None:
        """Makes the network."""
        settings: Any = self.model_config
        self.network: Any = settings[_NETWORK]()

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.network(batch[Columns.OBS])[0]}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """The values [N] of a batch."""
        return self.network(batch[Columns.OBS])[1].squeeze(1)

    def make_target_networks(self) -> None:
        """Makes that of APPO."""
        self._target: Any = make_target_network(self.network)

    def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
        """The network, and the one that follows it."""
        return [(self.network, self._target)]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the target network answers."""
        return {TARGET_NETWORK_ACTION_DIST_INPUTS: self._target(batch[Columns.OBS])[0]}


_NETWORK = "mlbridge_network"


def _module_spec(
    experiment: Experiment, observations: Any, actions: Any, agent: str = ""
) -> RLModuleSpec:
    """An agent's own network, or the algorithm's behind an encoder if it has one."""
    layers = experiment.settings.layers
    encoder, whole = experiment.networks(observations, actions, agent)
    if whole is not None:
        return RLModuleSpec(module_class=_OwnModule, model_config={_NETWORK: whole})
    if encoder is None:
        model = DefaultModelConfig(fcnet_hiddens=layers, fcnet_activation="relu")
        return RLModuleSpec(model_config=model)
    heads = DefaultModelConfig(
        head_fcnet_hiddens=layers, head_fcnet_activation="relu", vf_share_layers=False
    )
    is_dqn = experiment.settings.algo == "dqn"
    return RLModuleSpec(
        catalog_class=DQNCatalogWithEncoder if is_dqn else PPOCatalogWithEncoder,
        model_config={
            **asdict(heads),
            _ENCODER: encoder,
        },
    )


def config_of(experiment: Experiment) -> Any:
    """RLlib's configuration, which may be changed further."""
    settings = experiment.settings
    failure = _Failure(settings.out)

    def make_env(context: Any) -> Any:
        # The networks are small; the cores are the compilers'.
        torch.set_num_threads(1)
        return failure.noted(experiment.make_env(context.worker_index))

    register_env(_NAME, make_env)
    # RLlib's own functions have no types.
    kinds: dict[str, Any] = {"dqn": DQNConfig, "ppo": PPOConfig, "appo": APPOConfig}
    episodes = type(
        "Episodes", (_Episodes,), {"metric": experiment.optimization.metric}
    )
    config = (
        kinds[settings.algo]()
        # Its check takes an action by chance, which may not be legal.
        .environment(_NAME, disable_env_checking=True)
        .env_runners(num_env_runners=settings.workers)
        .learners(num_learners=0)
        # Environments start their compilers again by themselves: what they raise all
        # the same, the next worker's would raise as well, for ever.
        .fault_tolerance(restart_failed_env_runners=False)
        .callbacks(episodes)
        .debugging(seed=settings.seed, log_level="ERROR")
        # An iteration ends when there is something to tell, not after some seconds.
        .reporting(
            min_time_s_per_iteration=0,
            min_sample_timesteps_per_iteration=min(settings.rollout, settings.steps),
        )
    )
    is_several = _add_modules(config, experiment)
    shared = {"lr": settings.rate, "gamma": settings.gamma}
    if settings.algo == "dqn":
        return _dqn(config.training(**shared), settings.steps, is_several)
    batch = max(16, min(settings.rollout, settings.steps))
    config = config.training(
        **shared,
        train_batch_size_per_learner=batch,
        entropy_coeff=settings.entropy,
    )
    if settings.algo == "ppo":
        return config.training(minibatch_size=min(128, batch), num_epochs=6)
    fragment = max(8, batch // max(1, settings.workers))
    return config.env_runners(rollout_fragment_length=fragment)


def _add_modules(config: Any, experiment: Experiment) -> bool:
    """Gives each agent a module. Returns whether there are several agents."""
    env = experiment.make_env()
    try:
        specs = {
            agent: _module_spec(experiment, *spaces, agent)
            for agent, spaces in spaces_of(env).items()
        }
    finally:
        env.close()
    if "" in specs:
        config.rl_module(rl_module_spec=specs[""])
        return False
    config.multi_agent(
        policies=set(specs), policy_mapping_fn=lambda agent, *_, **__: agent
    )
    config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))
    # A cut episode does not say which rewards its agents still had to come.
    config.env_runners(batch_mode="complete_episodes")
    return True


def _dqn(config: Any, steps: int, is_several: bool) -> Any:
    """A double DQN with a prioritised memory."""
    kind = "MultiAgentPrioritized" if is_several else "Prioritized"
    return config.env_runners(rollout_fragment_length=4).training(
        double_q=True,
        dueling=False,
        num_atoms=1,
        n_step=1,
        train_batch_size_per_learner=64,
        num_steps_sampled_before_learning_starts=min(1_000, steps // 10),
        target_network_update_freq=500,
        replay_buffer_config={
            "type": f"{kind}EpisodeReplayBuffer",
            "capacity": 50_000,
            "alpha": 0.6,
            "beta": 0.4,
        },
        epsilon=[(0, 1.0), (max(1, steps * 2 // 5), 0.05)],
    )


def train(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = lambda *_: None,
) -> Learned:
    """Trains a policy, with each worker's compiler in a process of Ray.

    Args:
        experiment: what is asked for.
        resume: to go on from the last checkpoint.
        address: of a Ray cluster; by default one is made here.
        show: is told how far it is.

    Raises:
        InvalidArgument: there is no checkpoint to go on from, or of other settings.
        Timeout: for a long time there is no action.
    """
    settings = experiment.settings
    torch.set_num_threads(1)
    checkpoint = _Checkpoint((settings.out / "checkpoint").resolve())
    if resume:
        experiment.check()
    done = checkpoint.steps() if resume else 0
    experiment.save()
    with cluster(settings.workers + 1, address), _Failure(settings.out).raised():
        # Not the episodes of the beginning once more.
        seeded = experiment.changed(seed=settings.seed + done)
        algorithm: Any = config_of(seeded).build_algo()
        try:
            curve = Curve(metric=experiment.optimization.metric)
            if resume:
                checkpoint.load(algorithm)
                curve.load(settings.out / "curve.csv", done)
            curve.log_to(settings.out / "tensorboard")
            _learn(algorithm, settings, curve, done, checkpoint, show)
            policies = _policies(algorithm)
        finally:
            algorithm.stop()
    return Learned(policies, curve)


def _policies(algorithm: Any) -> dict[str, Any]:
    # APPO's learner does not tell this process's module what it has learned.
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, inference_only=True
    )
    if not algorithm.config.is_multi_agent:
        return {MODEL: algorithm.get_module()}
    agents = sorted(algorithm.config.policies)
    return {agent: algorithm.get_module(agent) for agent in agents}


def _learn(
    algorithm: Any,
    settings: TrainingSettings,
    curve: Curve,
    done: int,
    checkpoint: "_Checkpoint",
    show: Show,
) -> Curve:
    saved = done
    moved = time.monotonic()
    while done < settings.steps:
        results = _iteration(algorithm, done)["env_runners"]
        # APPO's first reports may come before its first episodes.
        now = int(results.get("num_env_steps_sampled_lifetime", done))
        if now > done:
            moved = time.monotonic()
        elif time.monotonic() - moved > STALLED:
            raise _stalled(done)
        done = now
        # Where no episode has ended, both may be NaN.
        ended = (results.get(name, []) for name in ("returns", "values"))
        returns, values = ([] if isinstance(a, float) else a for a in ended)
        for total, value in zip(returns, values, strict=True):
            curve.add_value(done, float(total), float(value))
        show(done, curve.recent())
        if done - saved >= settings.every or done >= settings.steps:
            saved = done
            # The curve may be ahead of the checkpoint: that much of it is not read.
            curve.write(settings.out, settings.title)
            checkpoint.write(algorithm, done)
    return curve


def _iteration(algorithm: Any, done: int) -> Any:
    """What one more iteration says.

    RLlib ends none before it has its actions: where there are none to come, it would
    wait for ever.

    Raises:
        Timeout: it takes too long, and is left to itself.
    """
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(algorithm.train())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return future.result(STALLED)
    except TimeoutError:
        if future.done():
            # Its own.
            raise
        raise _stalled(done) from None


def _stalled(done: int) -> Timeout:
    return Timeout(
        f"an iteration has no end after {STALLED:.0f} s, or no action, after {done}"
        " actions: no compiler gets as far; Ray's logs and what the workers have"
        " printed say why"
    )


class _Failure:
    """What an environment raised in a worker: RLlib says only that the worker ended."""

    def __init__(self, out: Path) -> None:
        self.file = (out / "failure.txt").resolve()

    def noted(self, env: Any) -> Any:
        """The environment, whose errors are written to the file."""

        def noting(call: Callable[..., Any]) -> Callable[..., Any]:
            def method(*args: Any, **named: Any) -> Any:
                try:
                    return call(*args, **named)
                except Error as error:
                    # A worker on another machine may not have the folder.
                    with suppress(OSError):
                        text = f"{error.code}\n{error}"
                        self.file.write_text(text, encoding="utf-8")
                    raise

            return method

        env.reset, env.step = noting(env.reset), noting(env.step)
        return env

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raises what is in the file in place of the end of a worker."""
        self.file.unlink(missing_ok=True)
        try:
            yield
        except (RuntimeError, ray.exceptions.RayError):
            if not self.file.exists():
                raise
            code, _, why = self.file.read_text(encoding="utf-8").partition("\n")
            raise error_for(code, why) from None
        finally:
            self.file.unlink(missing_ok=True)


class _Checkpoint:
    """RLlib's folder, and after how many actions it was written: whole, or the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._new = folder.with_name(f"{folder.name}.new")
        self._old = folder.with_name(f"{folder.name}.old")

    def steps(self) -> int:
        """After how many actions it was written.

        Raises:
            InvalidArgument: there is none.
        """
        if not self.folder.is_dir() and self._old.is_dir():
            # Cut off between the two renames of `write`.
            self._old.rename(self.folder)
        try:
            return int((self.folder / _STEPS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"there is no {self.folder} to go on from: {error}"
            ) from None

    def load(self, algorithm: Any) -> None:
        """Gives an algorithm what the last one had.

        Raises:
            Malformed: the folder is damaged.
        """
        try:
            algorithm.restore_from_path(str(self.folder))
        # As with Stable-Baselines3: pickle, torch or Ray finds it first.
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise Malformed(f"{self.folder}: {why}") from error

    def write(self, algorithm: Any, done: int) -> None:
        """Takes the place of the last one when it is complete."""
        for folder in (self._new, self._old):
            shutil.rmtree(folder, ignore_errors=True)
        algorithm.save_to_path(str(self._new))
        (self._new / _STEPS).write_text(str(done), encoding="utf-8")
        if self.folder.is_dir():
            self.folder.rename(self._old)
        self._new.rename(self.folder)
        shutil.rmtree(self._old, ignore_errors=True)
