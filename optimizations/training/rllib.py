# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learning a policy by RLlib: double DQN, PPO and APPO, here or on a Ray cluster."""

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Before Ray is imported: it reports to nobody.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env
from torch import Tensor, nn

from mlbridge.errors import InvalidArgument, Timeout
from mlbridge_optimizations.phase_ordering.network import Scores
from mlbridge_optimizations.training.curve import Curve, Show, ratio_of
from mlbridge_optimizations.training.settings import PolicySettings

PACKAGE = Path(__file__).resolve().parents[2]
STALLED = 1800.0
"""Seconds without the actions of one iteration: a training is given up then."""

_STEPS = "steps"
_NAME = "mlbridge/PhaseOrdering-training"


@contextmanager
def cluster(cpus: int, address: str | None) -> Iterator[None]:
    """The Ray cluster at an address, or a small one of our own that is gone afterwards.

    The nodes of a cluster need this package, the plug-in and the corpus, at the same
    paths as here.
    """
    if ray.is_initialized():
        yield
        return
    # What Ray starts has to find this package where we found it.
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
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
    ray.init(**settings)
    try:
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


class _Episodes(RLlibCallback):
    """Reports each episode as it ends."""

    def on_episode_end(self, **kwargs: Any) -> None:
        episode, log = kwargs["episode"], kwargs["metrics_logger"]
        info = episode.get_infos(-1)
        if "error" not in info:
            log.log_value("returns", episode.get_return(), reduce="item_series")
            log.log_value("ratios", ratio_of(info), reduce="item_series")


def config_of(settings: PolicySettings) -> Any:
    """RLlib's configuration, which may be changed further."""
    register_env(_NAME, lambda context: settings.make_env(context.worker_index))
    # RLlib's own functions have no types.
    kinds: dict[str, Any] = {"dqn": DQNConfig, "ppo": PPOConfig, "appo": APPOConfig}
    model = DefaultModelConfig(
        fcnet_hiddens=list(settings.hidden), fcnet_activation="relu"
    )
    config = (
        kinds[settings.algo]()
        .environment(_NAME)
        .env_runners(num_env_runners=settings.workers)
        .rl_module(model_config=model)
        .learners(num_learners=0)
        .callbacks(_Episodes)
        .debugging(seed=settings.seed, log_level="ERROR")
        # An iteration ends when there is something to tell, not after some seconds.
        .reporting(
            min_time_s_per_iteration=0,
            min_sample_timesteps_per_iteration=min(settings.rollout, settings.steps),
        )
    )
    batch = max(16, min(settings.rollout, settings.steps))
    shared = {"lr": settings.learning_rate, "gamma": settings.gamma}
    if settings.algo == "dqn":
        return config.env_runners(rollout_fragment_length=4).training(
            **shared,
            double_q=True,
            dueling=False,
            num_atoms=1,
            n_step=1,
            train_batch_size_per_learner=64,
            num_steps_sampled_before_learning_starts=min(1_000, settings.steps // 10),
            target_network_update_freq=500,
            replay_buffer_config={
                "type": "PrioritizedEpisodeReplayBuffer",
                "capacity": 50_000,
                "alpha": 0.6,
                "beta": 0.4,
            },
            epsilon=[(0, 1.0), (max(1, settings.steps * 2 // 5), 0.05)],
        )
    config = config.training(
        **shared,
        train_batch_size_per_learner=batch,
        entropy_coeff=settings.entropy,
    )
    if settings.algo == "ppo":
        return config.training(minibatch_size=min(128, batch), num_epochs=6)
    fragment = max(8, batch // max(1, settings.workers))
    return config.env_runners(rollout_fragment_length=fragment)


def train(
    settings: PolicySettings,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = lambda *_: None,
) -> tuple[Scores, Curve]:
    """Trains a policy, with each worker's compiler in a process of Ray.

    Args:
        settings: what is asked for.
        resume: to go on from the last checkpoint.
        address: of a Ray cluster; by default one is made here.
        show: is told how far it is.

    Raises:
        InvalidArgument: there is no checkpoint to go on from, or of other settings.
        Timeout: for a long time there is no action.
    """
    checkpoint = _Checkpoint((settings.out / "checkpoint").resolve())
    done = 0
    if resume:
        settings.check_saved()
        done = checkpoint.steps()
    settings.save()
    with cluster(settings.workers + 1, address):
        # Not the modules of the beginning once more.
        seeded = settings.changed(seed=settings.seed + done)
        algorithm: Any = config_of(seeded).build_algo()
        try:
            curve = Curve()
            if resume:
                algorithm.restore_from_path(str(checkpoint.folder))
                curve = Curve.load(settings.out / "curve.csv", done)
            curve.log_to(settings.out / "tensorboard")
            curve = _learn(algorithm, settings, curve, done, checkpoint, show)
            network = _Network(algorithm.get_module())
        finally:
            algorithm.stop()
    return Scores(settings.make_env().normalised, network, network.output), curve


def _learn(
    algorithm: Any,
    settings: PolicySettings,
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
        pairs = zip(results.get("returns", []), results.get("ratios", []), strict=True)
        for total, ratio in pairs:
            curve.add(done, float(total), float(ratio))
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


class _Network(nn.Module):
    """The scores of actions, of a trained module."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module
        self.is_dqn = hasattr(module, "compute_q_values")
        self.output = "q_values" if self.is_dqn else "logits"

    def forward(self, observation: Tensor) -> Tensor:
        batch = {Columns.OBS: observation}
        if self.is_dqn:
            values: Tensor = self.module.compute_q_values(batch)["qf_preds"]
            return values
        found = self.module._forward_inference(batch)
        logits: Tensor = found[Columns.ACTION_DIST_INPUTS]
        return logits
