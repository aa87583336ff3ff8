# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns what to spill, by PPO of RLlib: with one agent, or with two in turn.

.venv/bin/python -m examples.environment.train_rllib --help
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Before Ray is imported: it reports to nobody.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.tune.registry import register_env
from rich.console import Console
from rich.progress import Progress

from mlbridge.envs import MultiAgentCompilerEnv

from .curve import Curve, argument_parser, compare
from .spills import ACTION_SPACE, AGENTS, OBSERVATION_SPACE, ROOT, Choice, command, make

Show = Callable[[int], None]


@contextmanager
def local_ray(cpus: int) -> Iterator[None]:
    """A Ray of our own on this machine, small, and gone afterwards with its files."""
    folder = tempfile.mkdtemp(prefix="ray-")
    # What Ray starts has to find this package where we found it.
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=100 << 20,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=folder,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _make_multi_agent(spec: str, worker: int) -> MultiAgentCompilerEnv:
    return MultiAgentCompilerEnv(
        command(classes=2),
        spec,
        observation_spaces=dict.fromkeys(AGENTS, OBSERVATION_SPACE),
        action_spaces=dict.fromkeys(AGENTS, ACTION_SPACE),
        worker=worker,
    )


class _Episodes(RLlibCallback):
    """Reports the return of each episode as it ends."""

    def on_episode_end(self, **kwargs: Any) -> None:
        kwargs["metrics_logger"].log_value(
            "returns", kwargs["episode"].get_return(), reduce="item_series"
        )


def train(
    spec: str,
    steps: int,
    workers: int,
    seed: int,
    show: Show = lambda steps: None,
    *,
    agents: int = 1,
) -> tuple[Any, Curve]:
    """Trains with so many compilers, each in a worker process of Ray.

    Args:
        spec: how to reach them, such as ``shm``.
        steps: of all of them together, rounded up to whole rollouts.
        workers: how many.
        seed: of the network, of the learner, and of the compilers' functions.
        show: is told the steps so far.
        agents: 1, or 2 with a policy each.

    Returns:
        The network of the first agent, an RLModule, and the curve.
    """
    if agents == 1:
        register_env("spills", lambda config: make(spec, config.worker_index))
    else:
        register_env(
            "spills", lambda config: _make_multi_agent(spec, config.worker_index)
        )
    batch = 512
    # RLlib's own functions have no types.
    settings: Any = PPOConfig
    config = (
        settings()
        .environment("spills")
        .env_runners(
            num_env_runners=workers,
            batch_mode="complete_episodes",
        )
        .training(
            train_batch_size_per_learner=batch,
            minibatch_size=128,
            num_epochs=10,
            lr=1e-3,
            gamma=0.9,
        )
        .learners(num_learners=0)
        .callbacks(_Episodes)
        .debugging(seed=seed, log_level="ERROR")
    )
    if agents == 2:
        config.multi_agent(
            policies=set(AGENTS),
            policy_mapping_fn=lambda agent, *args, **kwargs: agent,
        )
    curve = Curve()
    algorithm: Any = config.build_algo()
    try:
        done = 0
        while done < steps:
            results = algorithm.train()["env_runners"]
            done = int(results["num_env_steps_sampled_lifetime"])
            for episode_return in results.get("returns", []):
                curve.add(done, float(episode_return))
            show(done)
        module = algorithm.get_module(*AGENTS[: agents - 1])
    finally:
        algorithm.stop()
    return module, curve


def choice_of(module: Any) -> Choice:
    """The trained network as a policy that takes the likeliest action."""

    def choose(ranges: Any) -> int:
        with torch.no_grad():
            batch = {Columns.OBS: torch.from_numpy(ranges)[None]}
            logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
        return int(logits.argmax())

    return choose


def main() -> None:
    """The command line."""
    parser = argument_parser(__doc__, "rllib", "the learning curve (.csv, .png)")
    parser.add_argument("--agents", type=int, default=1, choices=(1, 2))
    arguments = parser.parse_args()

    console = Console()
    with local_ray(arguments.workers), Progress(console=console) as progress:
        task = progress.add_task("Training", total=arguments.steps)
        module, curve = train(
            arguments.spec,
            arguments.steps,
            arguments.workers,
            arguments.seed,
            lambda steps: progress.update(task, completed=steps),
            agents=arguments.agents,
        )
    curve.write(arguments.out, "Spilling, learned by PPO (RLlib)")
    compare(
        console,
        "what PPO has learned",
        choice_of(module),
        lambda ranges: int(ACTION_SPACE.sample()),
        arguments.episodes,
    )
    console.print(f"The curve is in {arguments.out}.png")


if __name__ == "__main__":
    main()
