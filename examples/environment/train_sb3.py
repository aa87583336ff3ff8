# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns what to spill, by PPO of Stable-Baselines3.

.venv/bin/python -m examples.environment.train_sb3 --help
"""

from collections.abc import Callable

import torch
from rich.console import Console
from rich.progress import Progress
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecMonitor

from mlbridge.envs import CompilerVecEnv

from .curve import Curve, argument_parser, compare
from .spills import ACTION_SPACE, OBSERVATION_SPACE, command

Show = Callable[[int], None]


class _Watch(BaseCallback):
    """Notes each episode that ends, and shows how far the training is."""

    def __init__(self, curve: Curve, show: Show) -> None:
        super().__init__()
        self._curve = curve
        self._show = show

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self._curve.add(self.num_timesteps, float(info["episode"]["r"]))
        self._show(self.num_timesteps)
        return True


def train(
    spec: str, steps: int, workers: int, seed: int, show: Show = lambda steps: None
) -> tuple[PPO, Curve]:
    """Trains with so many compilers; the same seed gives the same model.

    Args:
        spec: how to reach them, such as ``shm``.
        steps: of all of them together, rounded up to whole rollouts.
        workers: how many.
        seed: of the network, of the learner, and of the compilers' functions.
        show: is told the steps so far.
    """
    torch.set_num_threads(1)  # The network is small; the cores are the compilers'.
    curve = Curve()
    compilers = CompilerVecEnv(
        workers,
        command(),
        spec,
        observation_space=OBSERVATION_SPACE,
        action_space=ACTION_SPACE,
    )
    try:
        model = PPO(
            "MlpPolicy",
            VecMonitor(compilers),
            n_steps=512 // workers,
            batch_size=128,
            learning_rate=1e-3,
            ent_coef=0.01,
            gamma=0.9,
            seed=seed,
            device="cpu",
        )
        # Its own would leave an empty folder in /tmp.
        model.set_logger(Logger(folder=None, output_formats=[]))
        model.learn(steps, callback=_Watch(curve, show))
    finally:
        compilers.close()
    return model, curve


def main() -> None:
    """The command line."""
    parser = argument_parser(
        __doc__, "sb3", "the model (.zip) and its learning curve (.csv, .png)"
    )
    arguments = parser.parse_args()

    console = Console()
    with Progress(console=console) as progress:
        task = progress.add_task("Training", total=arguments.steps)
        model, curve = train(
            arguments.spec,
            arguments.steps,
            arguments.workers,
            arguments.seed,
            lambda steps: progress.update(task, completed=steps),
        )
    curve.write(arguments.out, "Spilling, learned by PPO (Stable-Baselines3)")
    model.save(arguments.out)
    compare(
        console,
        "what PPO has learned",
        lambda ranges: int(model.predict(ranges, deterministic=True)[0]),
        lambda ranges: int(ACTION_SPACE.sample()),
        arguments.episodes,
    )
    console.print(f"The curve is in {arguments.out}.png")


if __name__ == "__main__":
    main()
