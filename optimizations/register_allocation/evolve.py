# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evolves a model of register allocation.

CMA-ES draws candidates for the network's weights. The plug-in's search tries all
candidates on each function in one run of llc, and reports the weighted costs of spills,
reloads and copies. A candidate's loss has two parts relative to greedy: the mean
logarithm of the costs, and a share of the logarithm of their sum.
"""

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from mlbridge_optimizations.training.cma_es import Weights, candidates_of

from .functions import SMALLEST, Costs, costs_of
from .settings import Evolution

if TYPE_CHECKING:
    from .networks import Network

# Limits the logarithm for each function, so that no single function dominates.
LIMIT = 0.7
# This weight of the sum's logarithm is small, because the hottest functions dominate
# the sum.
SHARE_OF_SUM = 0.1


@dataclass(frozen=True)
class Generation:
    """The result of one generation.

    Attributes:
        loss: the mean of the candidates' losses on the sampled functions.
        best: the lowest loss of a candidate.
        validation: the loss of the distribution's mean on the validation modules, or
            None if this generation was not validated.
        functions: the number of functions sampled.
        seconds: the time since the start.
    """

    number: int
    loss: float
    best: float
    validation: float | None
    functions: int
    seconds: float


def loss_of(found: Sequence[Costs], policy: str) -> float:
    """Returns a policy's loss. It is 0 if all costs equal greedy's costs."""
    functions = [function for function in found if function.greedy > 0]
    if not functions:
        return 0.0
    greedy = np.maximum([function.greedy for function in functions], SMALLEST)
    trials = [function.trials.get(policy) for function in functions]
    # A failed trial gets the highest limited cost.
    worst = greedy * math.exp(LIMIT)
    costs = np.array(
        [
            bad if cost is None else max(cost, SMALLEST)
            for cost, bad in zip(trials, worst, strict=True)
        ]
    )
    limited = np.clip(np.log(costs / greedy), -LIMIT, LIMIT)
    of_sum = math.log(costs.sum() / greedy.sum())
    return float(limited.mean() + SHARE_OF_SUM * of_sum)


def losses(
    network: "Network",
    candidates: Sequence[Weights],
    modules: Sequence[Path],
    plugin: Path,
    jobs: int,
) -> tuple[list[float], int]:
    """Returns the candidates' losses on modules, and the number of functions."""
    with TemporaryDirectory(prefix="mlbridge-evolve-") as folder:
        options = [
            f"-mlbridge-regalloc-search={len(candidates) + 1}",
            "-mlbridge-regalloc-search-all",
        ]
        names = []
        for number, weights in enumerate(candidates):
            spec = network.write(Path(folder, str(number)), weights)
            names.append(f"{network.kind}={spec}")
            options.append(f"-mlbridge-regalloc-try={names[-1]}")
        found = costs_of(modules, plugin, options, jobs=jobs)
    searched = sum(function.greedy > 0 for function in found)
    return [loss_of(found, name) for name in names], searched


def evolve(
    network: "Network",
    training: Sequence[Path],
    validation: Sequence[Path],
    plugin: Path,
    options: Evolution,
    jobs: int = os.cpu_count() or 1,
) -> Iterator[tuple[Generation, Weights]]:
    """Yields the generations, each with the mean of its distribution."""
    begin = time.monotonic()
    draw = np.random.default_rng(options.seed)
    for drawn in candidates_of(network.start, options):
        size = min(options.sample, len(training))
        modules = [training[i] for i in draw.choice(len(training), size, replace=False)]
        found, functions = losses(network, drawn.weights, modules, plugin, jobs)
        mean = drawn.tell(found)
        checked = None
        if drawn.is_validated:
            checked = losses(network, [mean], validation, plugin, jobs)[0][0]
        generation = Generation(
            drawn.generation,
            loss=float(np.mean(found)),
            best=min(found),
            validation=checked,
            functions=functions,
            seconds=time.monotonic() - begin,
        )
        yield generation, mean


def plot(generations: Sequence[Generation], path: Path, title: str) -> None:
    """Draws the losses of all generations as factors (greedy has 1) in a PNG file."""
    from mlbridge_optimizations.plot import finish, panels_of

    checked = [
        (one.number, math.exp(one.validation))
        for one in generations
        if one.validation is not None
    ]
    numbers = [one.number for one in generations]
    with panels_of(path, size=(8, 4)) as (panel,):
        means = [math.exp(one.loss) for one in generations]
        panel.plot(numbers, means, label="mean candidate,\nsampled functions")
        panel.plot(*zip(*checked, strict=True), "o-", label="validation functions")
        panel.axhline(1, color="0.5", linewidth=1, label="greedy")
        panel.set_ylim(top=min(1.2, max(means)))
        finish(
            panel,
            title=title,
            xlabel="generation",
            ylabel="exp(loss) (lower is better)",
        )
