# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learning a policy by Stable-Baselines3: PPO and DQN.

With one worker, the same seed gives the same curve and the same policy.
"""

from typing import Any

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv
from torch import Tensor, nn

from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.sb3 import CompilerVecEnv
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.phase_ordering.network import Scores
from mlbridge_optimizations.training.curve import Curve, Show, ratio_of
from mlbridge_optimizations.training.settings import PolicySettings


class _Compilers(CompilerVecEnv):
    """Environments of one training, in one thread."""

    def __init__(self, settings: PolicySettings) -> None:
        made = [settings.make_env(worker) for worker in range(settings.workers)]
        self.envs: list[CompilerEnv] = list(made)
        VecEnv.__init__(
            self, len(made), made[0].observation_space, made[0].action_space
        )


def train(
    settings: PolicySettings, *, resume: bool = False, show: Show = lambda *_: None
) -> tuple[Scores, Curve]:
    """Trains a policy; with ``resume`` from its last checkpoint on.

    Raises:
        InvalidArgument: there is no checkpoint to go on from, or of other settings.
    """
    torch.set_num_threads(1)  # The network is small; the cores are the compilers'.
    if resume:
        settings.check_saved()
    settings.save()
    compilers = _Compilers(settings)
    try:
        model, done = _model(settings, VecMonitor(compilers), resume=resume)
        curve = Curve()
        if resume:
            curve = Curve.load(settings.out / "curve.csv", done)
        curve.log_to(settings.out / "tensorboard")
        # Its own would leave an empty folder in /tmp.
        model.set_logger(Logger(folder=None, output_formats=[]))
        watch = _Watch(settings, curve, show)
        left = max(0, settings.steps - done)
        model.learn(left, callback=watch, reset_num_timesteps=not resume)
        watch.save()
        normalised = settings.make_env().normalised
    finally:
        compilers.close()
    network = _Network(model)
    return Scores(normalised, network, network.output), curve


def _model(
    settings: PolicySettings, compilers: VecEnv, *, resume: bool
) -> tuple[BaseAlgorithm, int]:
    checkpoint = settings.out / "checkpoint.zip"
    kind: type[PPO] | type[DQN] = PPO if settings.algo == "ppo" else DQN
    if resume:
        if not checkpoint.is_file():
            raise InvalidArgument(f"there is no {checkpoint} to go on from")
        loaded = kind.load(checkpoint, env=compilers, device="cpu")
        if isinstance(loaded, DQN):
            loaded.load_replay_buffer(settings.out / "replay.pkl")
        # Not the modules of the beginning once more.
        compilers.seed(settings.seed + loaded.num_timesteps)
        return loaded, loaded.num_timesteps
    common: dict[str, Any] = {
        "policy_kwargs": {"net_arch": list(settings.hidden)},
        "learning_rate": settings.learning_rate,
        "gamma": settings.gamma,
        "seed": settings.seed,
        "device": "cpu",
    }
    if kind is PPO:
        rollout = max(2, settings.rollout // settings.workers)
        ppo = PPO(
            "MlpPolicy",
            compilers,
            n_steps=rollout,
            batch_size=max(2, min(128, rollout * settings.workers)),
            n_epochs=6,
            gae_lambda=0.95,
            ent_coef=settings.entropy,
            **common,
        )
        return ppo, 0
    dqn = DQN(
        "MlpPolicy",
        compilers,
        buffer_size=min(50_000, max(1_000, settings.steps)),
        learning_starts=min(1_000, settings.steps // 10),
        batch_size=64,
        train_freq=4,
        target_update_interval=500,
        exploration_fraction=0.4,
        exploration_final_eps=0.05,
        **common,
    )
    return dqn, 0


class _Watch(BaseCallback):
    """Notes each episode that ends, and saves what has been learned now and then."""

    def __init__(self, settings: PolicySettings, curve: Curve, show: Show) -> None:
        super().__init__()
        self._settings, self._curve, self._show = settings, curve, show
        self._saved = 0

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info and "error" not in info:
                total = float(info["episode"]["r"])
                self._curve.add(self.num_timesteps, total, ratio_of(info))
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


class _Network(nn.Module):
    """The scores of actions, of a trained policy."""

    def __init__(self, model: BaseAlgorithm) -> None:
        super().__init__()
        policy: Any = model.policy
        policy.set_training_mode(False)
        # No more than this: the rest of a policy has no part in its decisions.
        self.layers: nn.Module
        if isinstance(model, DQN):
            self.output, self.layers = "q_values", policy.q_net.q_net
        else:
            self.output = "logits"
            self.layers = nn.Sequential(
                policy.mlp_extractor.policy_net, policy.action_net
            )

    def forward(self, observation: Tensor) -> Tensor:
        scores: Tensor = self.layers(observation)
        return scores
