# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the return grew while a model learned, and what both trainings ask for."""

import argparse
import csv
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .spills import HEURISTICS, ROOT, Choice, mean_return

TEST_SEED = 1_000_000
"""The functions that policies are compared by; training draws other ones."""


@dataclass
class Curve:
    """The episodes of a training, in the order in which they ended."""

    steps: list[int] = field(default_factory=list)
    """Steps of all workers so far."""
    returns: list[float] = field(default_factory=list)

    def add(self, steps: int, episode_return: float) -> None:
        """One more episode."""
        self.steps.append(steps)
        self.returns.append(episode_return)

    def mean(self, start: float, end: float) -> float:
        """The mean return between two points of the training, as parts of it."""
        first, last = (int(part * len(self.returns)) for part in (start, end))
        part = self.returns[first:last]
        return sum(part) / len(part)

    def write(self, stem: Path, title: str) -> None:
        """Writes STEM.csv, and STEM.png with the mean of 50 episodes each."""
        stem.parent.mkdir(parents=True, exist_ok=True)
        with stem.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["steps", "return"])
            writer.writerows(zip(self.steps, self.returns, strict=True))

        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        window = max(1, min(50, len(self.returns) // 4))
        means = [
            sum(self.returns[i - window : i]) / window
            for i in range(window, len(self.returns) + 1)
        ]
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        axes.plot(self.steps, self.returns, ".", color="0.85", label="an episode")
        axes.plot(self.steps[window - 1 :], means, label=f"mean of {window}")
        axes.axhline(-1, color="green", linestyle="--", label="the optimum")
        axes.set(xlabel="steps", ylabel="return (-spill cost / optimum)", title=title)
        axes.legend(loc="lower right")
        figure.savefig(stem.with_suffix(".png"), dpi=120)
        plt.close(figure)


def compare(
    console: Console, name: str, choose: Choice, random: Choice, episodes: int
) -> None:
    """Prints what the trained policy and others spend on functions of a test set."""
    table = Table("spills", "cost / optimum", title=f"{episodes} unseen functions")
    policies = {"at random": random, **HEURISTICS, name: choose}
    for label, policy in policies.items():
        cost = -mean_return(policy, episodes, TEST_SEED)
        table.add_row(label, f"{cost:.3f}")
    console.print(table)


def argument_parser(
    description: str | None, library: str, out: str
) -> argparse.ArgumentParser:
    """The command line of a training; ``out`` is what --out gets."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--spec", default="shm", help="pipe, shm, shm:?serdes=json ...")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--workers", type=int, default=2, help="compilers at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=300, help="of the comparison")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build/environment" / library, help=out
    )
    return parser
