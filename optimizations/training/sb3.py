# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns a policy with Stable-Baselines3: PPO, A2C, double DQN, or sb3-contrib's ARS.

With one worker, the same seed gives the same curve and the same policy.
"""

from functools import partial
from typing import Any, TypeVar

import gymnasium
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from mlbridge.envs import CompilerEnv
from mlbridge.envs.sb3 import CompilerVecEnv
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.optimization import MODEL
from mlbridge_optimizations.show import quiet
from mlbridge_optimizations.training.credits import Credits
from mlbridge_optimizations.training.curve import Curve, ShowReturn
from mlbridge_optimizations.training.double_dqn import DoubleDQN, LegalPolicy
from mlbridge_optimizations.training.experiment import Experiment, Learned
from mlbridge_optimizations.training.networks import OwnEncoder, OwnNetwork, OwnPolicy
from mlbridge_optimizations.training.settings import TrainingSettings

T = TypeVar("T")


def _kind(algo: str) -> type[BaseAlgorithm]:
    if algo != "ars":
        kinds: dict[str, type[BaseAlgorithm]]
        kinds = {"ppo": PPO, "a2c": A2C, "dqn": DoubleDQN}
        return kinds[algo]
    from mlbridge_optimizations.training.evolution import Evolution

    return Evolution


def train(
    experiment: Experiment, *, resume: bool = False, show: ShowReturn = quiet
) -> Learned:
    """Trains a policy. With ``resume``, continues from the last checkpoint.

    Raises InvalidArgument if the checkpoint is missing or has other settings.
    """
    settings = experiment.settings
    torch.set_num_threads(1)  # Networks are small, and compilers need the cores.
    if resume:
        experiment.check()
    compilers = _environments(experiment)
    try:
        experiment.save()
        model, done = _model(experiment, VecMonitor(compilers), resume=resume)
        curve = experiment.curve(done)
        # Replace Stable-Baselines3's logger, which would leave an empty folder in /tmp.
        model.set_logger(Logger(folder=None, output_formats=[]))
        left = max(0, settings.steps - done)
        # Round up to whole updates, because the algorithm only stops between updates.
        options = _options(experiment)
        update = options.get("n_steps", options.get("train_freq", 1)) * settings.workers
        watch = _Watch(experiment, curve, show, done + -(-left // update) * update)
        callbacks: list[BaseCallback] = [watch]
        if settings.algo in ("ppo", "a2c"):
            callbacks.append(Credits())
        model.learn(left, callback=callbacks, reset_num_timesteps=not resume)
        watch.save()
        # The export runs the network on the CPU.
        model.policy.to("cpu")
    finally:
        compilers.close()
    return Learned({MODEL: model}, curve)


def _environments(experiment: Experiment) -> VecEnv:
    """Makes all environments of the training. They run in this thread.

    The compilers of plain `CompilerEnv`s run in parallel.
    """
    name = experiment.optimization.name
    made = [experiment.make_env(n) for n in range(experiment.settings.workers)]
    if hasattr(made[0], "possible_agents"):
        raise InvalidArgument(
            f"'{name}' has several agents: {', '.join(made[0].possible_agents)};"
            " train them with --engine rllib"
        )
    for env in made:
        if not (isinstance(env, gymnasium.Env) and hasattr(env, "observation_space")):
            raise InvalidArgument(
                f"make_env of '{name}': expected a gymnasium.Env with spaces, found a"
                f" {type(env).__name__}"
            )
    if all(isinstance(env, CompilerEnv) for env in made):
        return CompilerVecEnv.of(made)
    return DummyVecEnv([partial(_itself, env) for env in made])


def _itself(env: T) -> T:
    return env


def _model(
    experiment: Experiment, compilers: VecEnv, *, resume: bool
) -> tuple[BaseAlgorithm, int]:
    """Makes or loads the model. Also returns the number of actions so far."""
    settings = experiment.settings
    kind: Any = _kind(settings.algo)
    if resume:
        return _loaded(kind, settings, compilers)
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
        policy = LegalPolicy if settings.algo == "dqn" else policy
    model = kind(
        policy,
        compilers,
        policy_kwargs=network,
        learning_rate=settings.rate,
        seed=settings.seed,
        device=_device(settings),
        **_options(experiment),
    )
    return model, 0


def _options(experiment: Experiment) -> dict[str, Any]:
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
        "batch_size": settings.batch,
        "train_freq": 4,
        "target_update_interval": 500,
        "exploration_fraction": settings.explored / settings.steps,
        "exploration_final_eps": settings.epsilon,
    }


def _device(settings: TrainingSettings) -> str:
    return "cuda" if settings.on_gpu() else "cpu"


def _loaded(
    kind: type[BaseAlgorithm], settings: TrainingSettings, compilers: VecEnv
) -> tuple[BaseAlgorithm, int]:
    out, seed = settings.out, settings.seed
    path = out / "checkpoint.zip"
    if not path.is_file():
        raise InvalidArgument(f"there is no {path} to resume from")
    try:
        loaded = kind.load(path, env=compilers, device=_device(settings))
        if isinstance(loaded, DQN):
            path = out / "replay.pkl"
            loaded.load_replay_buffer(path)
    # If a file is damaged, zip, pickle and torch may raise any exception.
    except Exception as error:
        raise Malformed(f"{path}: {type(error).__name__}: {error}") from error
    # Change the seed, so that the first episodes are not repeated.
    compilers.seed(seed + loaded.num_timesteps)
    return loaded, loaded.num_timesteps


class _Watch(BaseCallback):
    """Records each episode that ends, and saves checkpoints."""

    def __init__(
        self, experiment: Experiment, curve: Curve, show: ShowReturn, total: int
    ) -> None:
        super().__init__()
        self._settings, self._curve, self._show = experiment.settings, curve, show
        self._total, self._saved = total, 0

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info and "error" not in info:
                self._curve.add(self.num_timesteps, float(info["episode"]["r"]), info)
        total = max(self._total, self.num_timesteps)
        self._show(self.num_timesteps, total, self._curve.recent())
        if self.num_timesteps - self._saved >= self._settings.every:
            self.save()
        return True

    def save(self) -> None:
        self._saved = self.num_timesteps
        out = self._settings.out
        temporary = out / "checkpoint.new.zip"
        self.model.save(temporary)
        if isinstance(self.model, DQN):
            self.model.save_replay_buffer(out / "replay.new.pkl")
            (out / "replay.new.pkl").replace(out / "replay.pkl")
        temporary.replace(out / "checkpoint.zip")
        self._curve.write(out, self._settings.title)
