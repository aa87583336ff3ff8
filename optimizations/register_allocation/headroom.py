# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimates how much a model of register allocation can reduce the cost of spills.

Many networks with random weights allocate each function. A function's lowest cost is an
upper bound on its cost with the best network.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlbridge_optimizations.show import Show, quiet

from .functions import (
    SMALLEST,
    Costs,
    costs_of,
)
from .networks import NETWORKS

KINDS = ("dialogue", "dialogue-alone", "eviction")
"""The kinds of networks, which are drawn alternately."""

# The standard deviations of the weights, which are used alternately.
_SIGMAS = (0.05, 0.2, 0.8)
_AT_ONCE = 12  # The number of networks in one run of llc.

Function: TypeAlias = tuple[str, str]
"""A module and the name of a function."""


def draw_modules(modules: Sequence[Path], seed: int) -> list[Path]:
    """Returns all modules in a random order."""
    order = np.random.default_rng(seed).permutation(len(modules))
    return [modules[i] for i in order]


def _policies(tries: int, seed: int, folder: Path) -> Iterator[str]:
    """Writes networks with random weights. Yields values of -mlbridge-regalloc-try."""
    draw = np.random.default_rng(seed)
    for number in range(tries):
        kind = KINDS[number % len(KINDS)]
        sigma = _SIGMAS[number // len(KINDS) % len(_SIGMAS)]
        network = NETWORKS[kind]()
        # The first networks are the heuristics from which training starts.
        size = sigma if number >= len(KINDS) else 0.0
        weights = network.start + size * draw.normal(size=network.start.shape)
        yield f"{network.kind}={network.write(folder / str(number), weights)}"


def search(
    modules: Sequence[Path],
    plugin: Path,
    tries: int,
    *,
    seed: int = 0,
    jobs: int = 1,
    show: Show = quiet,
) -> dict[Function, NDArray[np.float64]]:
    """Returns the costs of each searched function by greedy and by all networks.

    Each array is float64 [1 + tries]. A network that fails has greedy's cost.
    """
    found: dict[Function, list[float]] = {}
    with TemporaryDirectory(prefix="mlbridge-headroom-") as folder:
        names = list(_policies(tries, seed, Path(folder)))
        for begin in range(0, tries, _AT_ONCE):
            part = names[begin : begin + _AT_ONCE]
            options = [
                f"-mlbridge-regalloc-search={len(part) + 1}",
                "-mlbridge-regalloc-search-all",
                *(f"-mlbridge-regalloc-try={name}" for name in part),
            ]
            for one in costs_of(modules, plugin, options, jobs=jobs):
                if one.greedy <= 0:
                    continue
                costs = found.setdefault((one.module, one.function), [one.greedy])
                costs += [_cost(one, name) for name in part]
            show(begin + len(part), tries)
    return {name: np.maximum(costs, SMALLEST) for name, costs in found.items()}


def _cost(function: Costs, policy: str) -> float:
    cost = function.trials.get(policy)
    return function.greedy if cost is None else cost


def costs_by_basic(
    modules: Sequence[Path], plugin: Path, jobs: int = 1
) -> dict[Function, float]:
    """Returns the costs of all functions by LLVM's allocator `basic`."""
    return {
        (one.module, one.function): max(one.final, SMALLEST)
        for one in costs_of(modules, plugin, ["-regalloc=basic"], jobs=jobs)
    }


def best_of(
    found: Mapping[Function, NDArray[np.float64]], counts: Sequence[int]
) -> dict[int, NDArray[np.float64]]:
    """Maps `counts` of networks to log(lowest cost / greedy's), float64 [functions].

    The lowest cost is at most greedy's cost, because greedy is one of the policies.
    """
    costs = np.stack(list(found.values()))
    return {
        count: np.log(costs[:, : 1 + count].min(axis=1) / costs[:, 0])
        for count in counts
    }
