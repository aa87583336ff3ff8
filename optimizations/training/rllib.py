# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns a policy with RLlib's double DQN, PPO or APPO, here or on a Ray cluster."""

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

from mlbridge_optimizations.extras import need

# Disable usage statistics. Ray reads this variable when it is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray
except ImportError:
    need("training with RLlib", ("ray",))
    raise

import cloudpickle as pickle
import ray.cloudpickle
import torch
from ray.rllib.algorithms import APPOConfig, DQNConfig, PPOConfig
from ray.rllib.algorithms.dqn.dqn_catalog import DQNCatalog
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.models.base import ENCODER_OUT, Encoder
from ray.rllib.core.models.configs import ModelConfig
from ray.rllib.core.models.torch.base import TorchModel
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.core.rl_module.apis import (
    TARGET_NETWORK_ACTION_DIST_INPUTS,
    TargetNetworkAPI,
)
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.tune.registry import register_env

from mlbridge.errors import Error, InvalidArgument, Malformed, Timeout, error_for
from mlbridge.export.rllib import load
from mlbridge_optimizations.optimization import MODEL, Metric, merged, spaces_of
from mlbridge_optimizations.show import quiet
from mlbridge_optimizations.training.curve import Curve, ShowReturn
from mlbridge_optimizations.training.experiment import Experiment, Learned
from mlbridge_optimizations.training.settings import TrainingSettings

STALLED = 1800.0
"""A training fails after this number of seconds without progress."""

_STEPS = "steps"
_NAME = "mlbridge-training"


@contextmanager
def cluster(cpus: int, address: str | None) -> Iterator[None]:
    """Connects to the Ray cluster at an address, or starts a small cluster here.

    The nodes of a cluster need these packages and the environment's files, at the same
    paths as on this machine.
    """
    # Send modules by value to Ray too, as `registry` does for optimisation files.
    for name in pickle.list_registry_pickle_by_value():
        by_value: Any = ray.cloudpickle.register_pickle_by_value
        by_value(sys.modules[name])
    if ray.is_initialized():
        yield
        return
    # Ray's processes must find the same modules as this process.
    path = os.pathsep.join(filter(None, sys.path))
    settings: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"env_vars": {"PYTHONPATH": path}},
    }
    # Hide RLlib's notes on its versions, which do not concern users.
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as own:
        if address is None:
            settings |= {
                "address": "local",  # Do not use a running cluster.
                "num_cpus": cpus,
                "include_dashboard": False,
                "object_store_memory": 150 << 20,
                "_temp_dir": own,
            }
        else:
            settings["address"] = address
        ray.init(**settings)
        try:
            yield
        finally:
            ray.shutdown()


class _Episodes(RLlibCallback):
    """Reports each episode when it ends."""

    metric = Metric()

    def __init__(self) -> None:
        super().__init__()
        # Maps each episode that continues in the next rollout to its return so far.
        self._before: dict[str, float] = {}

    def on_sample_end(self, **kwargs: Any) -> None:
        """Adds up the returns of episodes that continue in the next rollout."""
        for episode in kwargs["samples"]:
            if isinstance(episode, SingleAgentEpisode) and not episode.is_done:
                before = self._before.get(episode.id_, 0.0)
                self._before[episode.id_] = before + float(episode.get_return())

    def on_episode_end(self, **kwargs: Any) -> None:
        episode, log = kwargs["episode"], kwargs["metrics_logger"]
        info = episode.get_infos(-1)
        if isinstance(episode, MultiAgentEpisode):
            info = merged(info)
        before = self._before.pop(episode.id_, 0.0)
        if "error" not in info:
            total = before + float(episode.get_return())
            value = type(self).metric.value(total, info)
            log.log_value("returns", total, reduce="item_series")
            log.log_value("values", value, reduce="item_series")


class _EncoderConfig(ModelConfig):
    """RLlib's configuration of an optimisation's encoder."""

    def __init__(self, make: Callable[[Any], Any], space: Any) -> None:
        super().__init__()
        self.make, self.space = make, space

    @property
    def output_dims(self) -> tuple[int]:
        return (int(self.make(self.space).out_features),)

    def build(self, framework: str = "torch") -> "_Encoder":
        return _Encoder(self)


class _Encoder(TorchModel, Encoder):  # type: ignore[no-untyped-call]
    def __init__(self, config: _EncoderConfig) -> None:
        super().__init__(config)
        self.encoder = config.make(config.space)

    def _forward(self, input_dict: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {ENCODER_OUT: self.encoder(input_dict[Columns.OBS])}


_ENCODER = "mlbridge_encoder"


class _OwnEncoder:
    """A catalog whose networks start with the encoder of the module's configuration."""

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
    """The catalog for PPO and APPO."""


class DQNCatalogWithEncoder(_OwnEncoder, DQNCatalog):
    """The catalog for DQN."""


class _OwnModule(TorchRLModule, ValueFunctionAPI, TargetNetworkAPI):
    """An RLlib module with an optimisation's own network."""

    def setup(self) -> None:
        settings: Any = self.model_config
        self.network: Any = settings[_NETWORK]()

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.network(batch[Columns.OBS])[0]}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        return self.network(batch[Columns.OBS])[1].squeeze(1)

    def make_target_networks(self) -> None:
        self._target: Any = make_target_network(self.network)

    def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
        return [(self.network, self._target)]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {TARGET_NETWORK_ACTION_DIST_INPUTS: self._target(batch[Columns.OBS])[0]}


_NETWORK = "mlbridge_network"


def _module_spec(
    experiment: Experiment, observations: Any, actions: Any, agent: str = ""
) -> RLModuleSpec:
    """Describes an agent's own network, or the algorithm's network and the encoder."""
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
        model_config={**asdict(heads), _ENCODER: encoder},
    )


def config_of(experiment: Experiment) -> Any:
    """Returns RLlib's configuration, which the caller may change."""
    settings = experiment.settings
    failure = _Failure(settings.out)

    def make_env(context: Any) -> Any:
        # Use one thread, because networks are small and compilers need the cores.
        torch.set_num_threads(1)
        # RLlib counts its workers from 1, and its own process is 0.
        worker = max(0, context.worker_index - 1)
        return failure.noted(experiment.make_env(worker))

    register_env(_NAME, make_env)
    # Use Any, because RLlib's own functions have no types.
    kinds: dict[str, Any] = {"dqn": DQNConfig, "ppo": PPOConfig, "appo": APPOConfig}
    metric = {"metric": experiment.optimization.metric}
    config = (
        kinds[settings.algo]()
        # Disable RLlib's check, because its random action may be illegal.
        .environment(_NAME, disable_env_checking=True)
        .env_runners(num_env_runners=settings.workers)
        .learners(num_learners=0, num_gpus_per_learner=int(settings.on_gpu()))
        # Do not restart workers. Environments restart their compilers themselves, so
        # any other error would occur again in the next worker.
        .fault_tolerance(restart_failed_env_runners=False)
        .callbacks(type("Episodes", (_Episodes,), metric))
        .debugging(seed=settings.seed, log_level="ERROR")
        # End an iteration after a number of actions, not after some seconds.
        .reporting(
            min_time_s_per_iteration=0,
            min_sample_timesteps_per_iteration=min(settings.rollout, settings.steps),
        )
    )
    is_several = _add_modules(config, experiment)
    config.training(lr=settings.rate, gamma=settings.gamma)
    if settings.algo == "dqn":
        return _dqn(config, settings, is_several)
    batch = max(16, min(settings.rollout, settings.steps))
    config.training(train_batch_size_per_learner=batch, entropy_coeff=settings.entropy)
    if settings.algo == "ppo":
        return config.training(minibatch_size=min(128, batch), num_epochs=6)
    fragment = max(8, batch // max(1, settings.workers))
    return config.env_runners(rollout_fragment_length=fragment)


def _add_modules(config: Any, experiment: Experiment) -> bool:
    """Adds a module for each agent. Returns true if there are several agents."""
    env = experiment.make_env()
    agents = spaces_of(env)
    env.close()
    specs = {name: _module_spec(experiment, *by, name) for name, by in agents.items()}
    if "" in specs:
        config.rl_module(rl_module_spec=specs[""])
        return False
    config.multi_agent(
        policies=set(specs), policy_mapping_fn=lambda agent, *_, **__: agent
    )
    config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))
    # Use complete episodes, because a cut episode lacks its agents' later rewards.
    config.env_runners(batch_mode="complete_episodes")
    return True


def _dqn(config: Any, settings: TrainingSettings, is_several: bool) -> Any:
    kind = "MultiAgentPrioritized" if is_several else "Prioritized"
    return config.env_runners(rollout_fragment_length=4).training(
        double_q=True,
        dueling=False,
        num_atoms=1,
        n_step=1,
        train_batch_size_per_learner=settings.batch,
        num_steps_sampled_before_learning_starts=min(1_000, settings.steps // 10),
        target_network_update_freq=500,
        replay_buffer_config={
            "type": f"{kind}EpisodeReplayBuffer",
            "capacity": 50_000,
            "alpha": 0.6,
            "beta": 0.4,
        },
        epsilon=[(0, 1.0), (settings.explored, settings.epsilon)],
    )


def train(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: ShowReturn = quiet,
) -> Learned:
    """Trains a policy, with each worker's compiler in a process of Ray.

    Without an address, a Ray cluster is started here. InvalidArgument is raised if a
    checkpoint is missing or has other settings, and Timeout if there is no progress.
    """
    settings = experiment.settings
    torch.set_num_threads(1)
    checkpoint = _Checkpoint((settings.out / "checkpoint").resolve())
    if resume:
        experiment.check()
    done = checkpoint.steps() if resume else 0
    with cluster(settings.workers + 1, address), _Failure(settings.out).raised():
        # Change the seed, so that the first episodes are not repeated.
        seeded = experiment.changed(seed=settings.seed + done)
        # Set a deadline, because RLlib and Ray wait for workers without one.
        algorithm: Any = _within_deadline(config_of(seeded).build_algo, 0)
        try:
            experiment.save()
            if resume:
                checkpoint.load(algorithm)
            curve = experiment.curve(done)
            _learn(algorithm, settings, curve, done, checkpoint, show)
            policies = _policies(algorithm, checkpoint.folder)
        finally:
            algorithm.stop()
    return Learned(policies, curve)


def _policies(algorithm: Any, checkpoint: Path) -> dict[str, Any]:
    # Read the checkpoint, because APPO's learner may have changed its weights since the
    # checkpoint was written.
    if not algorithm.config.is_multi_agent:
        return {MODEL: load(checkpoint).module}
    return {n: load(checkpoint, n).module for n in sorted(algorithm.config.policies)}


def _learn(
    algorithm: Any,
    settings: TrainingSettings,
    curve: Curve,
    done: int,
    checkpoint: "_Checkpoint",
    show: ShowReturn,
) -> None:
    saved = done
    moved = time.monotonic()
    while done < settings.steps:
        results = _within_deadline(algorithm.train, done)["env_runners"]
        # Use `done` by default, because APPO may report before its first episodes.
        now = int(results.get("num_env_steps_sampled_lifetime", done))
        if now > done:
            moved = time.monotonic()
        elif time.monotonic() - moved > STALLED:
            raise _stalled(done)
        # Estimate the total, because the last iteration can exceed the settings' steps.
        size, left = max(1, now - done), max(0, settings.steps - now)
        done, total = now, now + -(-left // size) * size
        # If no episode has ended, both results are NaN instead of lists.
        ended = (results.get(name, []) for name in ("returns", "values"))
        returns, values = ([] if isinstance(a, float) else a for a in ended)
        for one, value in zip(returns, values, strict=True):
            curve.add_value(done, float(one), float(value))
        show(done, total, curve.recent())
        if done - saved >= settings.every or done >= settings.steps:
            saved = done
            # Write the curve first. `Curve.load` ignores episodes after the checkpoint.
            curve.write(settings.out, settings.title)
            checkpoint.write(algorithm, done)


def _within_deadline(call: Callable[[], Any], done: int) -> Any:
    """Returns the result of a call into RLlib.

    If the call takes more than `STALLED` seconds, raises Timeout, and the call's thread
    continues.
    """
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return future.result(STALLED)
    except TimeoutError:
        if future.done():
            # The call itself has raised this error, so pass it on.
            raise
        raise _stalled(done) from None


def _stalled(done: int) -> Timeout:
    return Timeout(
        f"no progress for {STALLED:.0f} s after {done} actions: no compiler gets as"
        " far; see Ray's logs and the output of the workers"
    )


class _Failure:
    """A file for the error of a worker's environment, because RLlib drops the error."""

    def __init__(self, out: Path) -> None:
        self.file = (out / "failure.txt").resolve()

    def noted(self, env: Any) -> Any:
        def noting(call: Callable[..., Any]) -> Callable[..., Any]:
            def method(*args: Any, **named: Any) -> Any:
                try:
                    return call(*args, **named)
                except Error as error:
                    # Ignore errors, because another machine may lack the folder.
                    with suppress(OSError):
                        text = f"{error.code}\n{error}"
                        self.file.write_text(text, encoding="utf-8")
                    raise

            return method

        env.reset, env.step = noting(env.reset), noting(env.step)
        return env

    @contextmanager
    def raised(self) -> Iterator[None]:
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
    """RLlib's checkpoint folder, which also has the number of actions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._new, self._old = (folder.with_suffix(end) for end in (".new", ".old"))

    def steps(self) -> int:
        """Returns the number of actions, or raises InvalidArgument."""
        if not self.folder.is_dir() and self._old.is_dir():
            # Use the old folder, because `write` was interrupted between its renames.
            self._old.rename(self.folder)
        try:
            return int((self.folder / _STEPS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problem = f"there is no {self.folder} to resume from: {error}"
            raise InvalidArgument(problem) from None

    def load(self, algorithm: Any) -> None:
        """Restores an algorithm. Raises Malformed if the folder is damaged."""
        try:
            algorithm.restore_from_path(str(self.folder))
        # If a file is damaged, pickle, torch and Ray may raise any exception.
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise Malformed(f"{self.folder}: {why}") from error

    def write(self, algorithm: Any, done: int) -> None:
        """Writes a checkpoint. When it is complete, it replaces the previous one."""
        for folder in (self._new, self._old):
            shutil.rmtree(folder, ignore_errors=True)
        algorithm.save_to_path(str(self._new))
        (self._new / _STEPS).write_text(str(done), encoding="utf-8")
        if self.folder.is_dir():
            self.folder.rename(self._old)
        self._new.rename(self.folder)
        shutil.rmtree(self._old, ignore_errors=True)
