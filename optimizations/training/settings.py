# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of a training."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge import grpc
from mlbridge.errors import InvalidArgument

ALGORITHMS = {"sb3": ("ppo", "a2c", "dqn", "ars"), "rllib": ("ppo", "dqn", "appo")}
"""The algorithms of each engine. DQN is always double DQN."""


Width = Annotated[int, Option("--width", min=1, help="Width of the hidden layers.")]
Generations = Annotated[int, Option(min=1, help="Number of generations.")]
Population = Annotated[int, Option(min=4, help="Candidates per generation.")]
Sigma = Annotated[
    float, Option(min=0.001, help="Standard deviation of the weights in generation 0.")
]
Seed = Annotated[int, Option(min=0, help="Random seed.")]


@dataclass(frozen=True)
class CostSettings:
    """The options of a cost model's training (costs.py)."""

    epochs: Annotated[int, Option(min=1, help="Passes over the examples.")] = 120
    batch: Annotated[int, Option(min=1, help="Examples in a batch.")] = 16
    rate: Annotated[float, Option(help="Largest learning rate of AdamW.")] = 0.003
    decay: Annotated[float, Option(help="Weight decay of AdamW.")] = 0.05
    expectation: Annotated[
        float,
        Option(
            help="Weight of the expected time in the loss. The error of the estimates"
            " has weight 1."
        ),
    ] = 0.3
    temperature: Annotated[
        float,
        Option(
            help="Temperature, in units of log(time), of the softmax that gives the"
            " expected time."
        ),
    ] = 0.05
    hidden: Width = 64
    members: Annotated[int, Option(min=1, help="Networks in the ensemble.")] = 5
    margin: Annotated[
        float,
        Option(
            help="The model keeps the default choice unless the estimated log(time)"
            " falls by more than this."
        ),
    ] = 0.05


@dataclass(frozen=True)
class EvolutionOptions:
    """The options of an evolution (cma_es.py)."""

    generations: Generations
    population: Population
    sigma: Sigma
    every: Annotated[
        int, Option(min=1, help="Generations between two validations.")
    ] = 5
    seed: Seed = 0


@dataclass(frozen=True)
class TrainingSettings:
    """The options of ``mlbridge train`` that define how a policy is trained."""

    out: Annotated[Path, Option(help="Folder for the results.")]
    engine: Annotated[
        str,
        Option(
            help="Library: sb3 (Stable-Baselines3), or rllib, which an optimisation"
            " with several agents needs."
        ),
    ] = "sb3"
    algo: Annotated[
        str,
        Option(
            help="Algorithm: ppo, dqn (double DQN), a2c (sb3), appo (rllib)"
            " or ars (sb3: Augmented Random Search, an evolution strategy)."
        ),
    ] = "ppo"
    workers: Annotated[int, Option(min=1, help="Parallel compilers.")] = 1
    steps: Annotated[int, Option(min=1, help="Total number of actions.")] = 20_000
    seed: Seed = 0
    hidden: Annotated[
        str, Option(help="Sizes of hidden layers, such as 128,128.", metavar="N,N,...")
    ] = "128,128"
    learning_rate: Annotated[
        float | None,
        Option(help="Learning rate of the network.", show_default="0.0005; ars: 0.1"),
    ] = None
    gamma: Annotated[
        float,
        Option(min=0, max=1, help="Discount factor per action (not ars)."),
    ] = 0.99
    entropy: Annotated[
        float, Option(min=0, help="Weight of the entropy bonus (ppo, a2c, appo).")
    ] = 0.01
    rollout: Annotated[
        int,
        Option(
            min=1,
            help="Actions of all workers between two updates (ppo, a2c, appo). a2c uses"
            " at most 16 actions of each worker.",
        ),
    ] = 512
    batch: Annotated[
        int, Option(min=1, help="Actions in a batch of the network's training (dqn).")
    ] = 64
    exploration: Annotated[
        int | None,
        Option(
            min=1,
            help="Actions in which the share of random actions falls from 1 to its"
            " minimum (dqn).",
            show_default="2/5 of --steps",
        ),
    ] = None
    epsilon: Annotated[
        float,
        Option(min=0, max=1, help="Minimum share of random actions (dqn)."),
    ] = 0.05
    every: Annotated[int, Option(min=1, help="Actions between checkpoints.")] = 5_000
    compilers: Annotated[
        list[str] | None,
        Option(
            metavar="ADDRESS",
            help="Address of compilers that already run, such as"
            " grpc://host:50051-50058, with a port for each worker. May be repeated.",
        ),
    ] = None
    device: Annotated[
        str,
        Option(
            help="Device that trains the network: cpu, cuda, or auto (cuda if PyTorch"
            " finds a GPU)."
        ),
    ] = "cpu"

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS.get(self.engine, ()):
            known = "; ".join(f"{e}: {', '.join(a)}" for e, a in ALGORITHMS.items())
            raise InvalidArgument(
                f"no algorithm '{self.algo}' of '{self.engine}', only {known}"
            )
        for option, number, fits, range_ in (
            ("learning-rate", self.rate, 0 < self.rate < math.inf, "above 0"),
            ("gamma", self.gamma, 0 <= self.gamma <= 1, "from 0 to 1"),
            ("entropy", self.entropy, 0 <= self.entropy < math.inf, "of 0 or more"),
            ("epsilon", self.epsilon, 0 <= self.epsilon <= 1, "from 0 to 1"),
        ):
            if not fits:
                raise InvalidArgument(
                    f"--{option}: expected a number {range_}, found {number}"
                )
        if self.device not in ("cpu", "cuda", "auto"):
            raise InvalidArgument(
                f"--device: expected cpu, cuda or auto, found '{self.device}'"
            )
        if self.compilers and len(self.addresses) < self.workers:
            raise InvalidArgument(
                f"--compilers: expected an address for each of {self.workers} workers"
                f" (--workers), found {len(self.addresses)}"
            )
        if not self.layers:
            raise InvalidArgument(
                f"--hidden: expected sizes of layers such as 128,128, found"
                f" '{self.hidden}'"
            )

    @property
    def layers(self) -> list[int]:
        """The sizes of the hidden layers. Empty if ``hidden`` is malformed."""
        try:
            found = [int(word) for word in self.hidden.split(",")]
        except ValueError:
            return []
        return found if min(found) > 0 else []

    @property
    def addresses(self) -> list[str]:
        """The addresses of running compilers, one for each worker."""
        return [one for each in self.compilers or () for one in grpc.expand(each)]

    def on_gpu(self) -> bool:
        """Returns whether a GPU trains the network.

        Raises InvalidArgument if ``device`` is cuda and PyTorch finds no GPU.
        """
        import torch

        found = torch.cuda.is_available()
        if self.device == "cuda" and not found:
            raise InvalidArgument(
                "--device cuda: PyTorch found no GPU; use --device auto, or install"
                " PyTorch with CUDA"
            )
        return found and self.device != "cpu"

    @property
    def rate(self) -> float:
        """The learning rate."""
        usual = 0.1 if self.algo == "ars" else 5e-4
        return self.learning_rate if self.learning_rate is not None else usual

    @property
    def explored(self) -> int:
        """The number of actions until the share of random actions is at its minimum."""
        return self.exploration or max(1, self.steps * 2 // 5)

    @property
    def title(self) -> str:
        """The title of plots."""
        return f"{self.algo} of {self.engine}, seed {self.seed}"
