# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learning a policy by Stable-Baselines3: PPO, A2C, DQN, and ARS of its contributions.

With one worker, the same seed gives the same curve and the same policy.
"""

from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from mlbridge.envs import CompilerEnv
from mlbridge.envs.sb3 import CompilerVecEnv
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.training.curve import Curve, Show
from mlbridge_optimizations.training.experiment import MODEL, Experiment, Learned
from mlbridge_optimizations.training.networks import OwnEncoder, OwnNetwork, OwnPolicy

_KINDS: dict[str, type[BaseAlgorithm]] = {"ppo": PPO, "a2c": A2C, "dqn": DQN}


def _kind(algo: str) -> type[BaseAlgorithm]:
    if algo != "ars":
        return _KINDS[algo]
    from mlbridge_optimizations.training.evolution import Evolution

    return Evolution


def train(
    experiment: Experiment, *, resume: bool = False, show: Show = lambda *_: None
) -> Learned:
    """Trains a policy; with ``resume`` from its last checkpoint on.

    Raises:
        InvalidArgument: there is no checkpoint to go on from, or of other settings.
    """
    settings = experiment.settings
    torch.set_num_threads(1)  # The network is small; the cores are the compilers'.
    if resume:
        experiment.check()
    experiment.save()
    compilers = _environments(experiment)
    try:
        model, done = _model(experiment, VecMonitor(compilers), resume=resume)
        curve = Curve(metric=experiment.optimization.metric)
        if resume:
            curve.load(settings.out / "curve.csv", done)
        curve.log_to(settings.out / "tensorboard")
        # Its own would leave an empty folder in /tmp.
        model.set_logger(Logger(folder=None, output_formats=[]))
        watch = _Watch(experiment, curve, show)
        left = max(0, settings.steps - done)
        model.learn(left, callback=watch, reset_num_timesteps=not resume)
        watch.save()
    finally:
        compilers.close()
    return Learned({MODEL: model}, curve)


def _environments(experiment: Experiment) -> CompilerVecEnv:
    """Those of one training, in one thread."""
    made = [
        experiment.make_env(worker) for worker in range(experiment.settings.workers)
    ]
    if hasattr(made[0], "possible_agents"):
        raise InvalidArgument(
            f"'{experiment.optimization.name}' has several agents:"
            f" {', '.join(made[0].possible_agents)}; they learn by --engine rllib"
        )
    for env in made:
        if not isinstance(env, CompilerEnv):
            raise InvalidArgument(
                f"make_env of '{experiment.optimization.name}': expected a CompilerEnv,"
                f" found a {type(env).__name__}"
            )
    return CompilerVecEnv.of(made)


def _model(
    experiment: Experiment, compilers: VecEnv, *, resume: bool
) -> tuple[BaseAlgorithm, int]:
    settings = experiment.settings
    kind: Any = _kind(settings.algo)
    if resume:
        return _loaded(kind, settings.out, settings.seed, compilers)
    space = compilers.observation_space
    encoder, whole = experiment.networks(space, compilers.action_space)
    network: dict[str, Any] = {"net_arch": settings.layers}
    policy: Any = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    if settings.algo == "ars":
        network["make"] = encoder
    elif whole is not None:
        network = {"features_extractor_class": OwnNetwork}
        policy, network["features_extractor_kwargs"] = OwnPolicy, {"make": whole}
    elif encoder is not None:
        network["features_extractor_class"] = OwnEncoder
        network["features_extractor_kwargs"] = {"make": encoder}
    common: dict[str, Any] = {
        "policy": policy,
        "env": compilers,
        "policy_kwargs": network,
        "learning_rate": settings.rate,
        "seed": settings.seed,
        "device": "cpu",
    }
    return kind(**common, **_options(experiment)), 0


def _options(experiment: Experiment) -> dict[str, Any]:
    """What an algorithm takes besides."""
    settings = experiment.settings
    rollout = max(2, settings.rollout // settings.workers)
    gamma, entropy = {"gamma": settings.gamma}, {"ent_coef": settings.entropy}
    if settings.algo == "ppo":
        batch = max(2, min(128, rollout * settings.workers))
        more: dict[str, Any] = {"batch_size": batch, "n_epochs": 6, "gae_lambda": 0.95}
        return {"n_steps": rollout, **gamma, **entropy, **more}
    if settings.algo == "a2c":
        return {"n_steps": min(16, rollout), **gamma, **entropy}
    if settings.algo == "ars":
        return {"n_eval_episodes": max(4, settings.workers)}
    return {
        **gamma,
        "buffer_size": min(50_000, max(1_000, settings.steps)),
        "learning_starts": min(1_000, settings.steps // 10),
        "batch_size": 64,
        "train_freq": 4,
        "target_update_interval": 500,
        "exploration_fraction": 0.4,
        "exploration_final_eps": 0.05,
    }


def _loaded(
    kind: type[BaseAlgorithm], out: Path, seed: int, compilers: VecEnv
) -> tuple[BaseAlgorithm, int]:
    checkpoint = out / "checkpoint.zip"
    if not checkpoint.is_file():
        raise InvalidArgument(f"there is no {checkpoint} to go on from")
    try:
        loaded = kind.load(checkpoint, env=compilers, device="cpu")
        if isinstance(loaded, DQN):
            loaded.load_replay_buffer(out / "replay.pkl")
    # A damaged file ends in whatever error zip, pickle or torch finds first.
    except Exception as error:
        raise Malformed(f"{checkpoint}: {type(error).__name__}: {error}") from error
    # Not the episodes of the beginning once more.
    compilers.seed(seed + loaded.num_timesteps)
    return loaded, loaded.num_timesteps


class _Watch(BaseCallback):
    """Notes each episode that ends, and saves what has been learned now and then."""

    def __init__(self, experiment: Experiment, curve: Curve, show: Show) -> None:
        super().__init__()
        self._settings, self._curve, self._show = experiment.settings, curve, show
        self._saved = 0

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info and "error" not in info:
                total = float(info["episode"]["r"])
                self._curve.add(self.num_timesteps, total, info)
        self._show(self.num_timesteps, self._curve.recent())
        if self.num_timesteps - self._saved >= self._settings.every:
            self.save()
        return True

    def save(self) -> None:
        """A checkpoint, from which a training that was cut short goes on."""
        self._saved = self.num_timesteps
        out = self._settings.out
        temporary = out / "checkpoint.new.zip"
        self.model.save(temporary)
        if isinstance(self.model, DQN):
            self.model.save_replay_buffer(out / "replay.new.pkl")
            (out / "replay.new.pkl").replace(out / "replay.pkl")
        temporary.replace(out / "checkpoint.zip")
        self._curve.write(out, self._settings.title)
