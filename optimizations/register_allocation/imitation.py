# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains an eviction model by Iterative BC-Max.

BC-Max ("Offline Imitation Learning from Multiple Baselines with Applications to
Compiler Optimization", arXiv 2403.19462) allocates each function with several policies
and imitates the decisions of the best policy. The iterative form adds the trained
policy to these policies, and begins again. The first policy is LLVM's own.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge.log import read_log
from mlbridge_optimizations.show import Show, quiet
from mlbridge_optimizations.training.cma_es import Weights

from .evolve import losses
from .functions import costs_of
from .networks import COLUMNS_OF_EVICTIONS, POSITIONS, EvictionNetwork
from .settings import ImitationOptions

STOCK = "none"
"""The spec that leaves all decisions to LLVM."""

Log: TypeAlias = tuple["Decisions", float]
"""The decisions of a policy in one function, and the function's cost."""


@dataclass(frozen=True)
class Decisions:
    """A policy's decisions about evictions.

    Attributes:
        columns: the features of all positions, float32 [n, 33, 20].
        masks: the positions that may be chosen, bool [n, 33].
        chosen: the chosen positions, int64 [n].
    """

    columns: NDArray[np.float32]
    masks: NDArray[np.bool_]
    chosen: NDArray[np.int64]

    @staticmethod
    def join(parts: "Sequence[Decisions]") -> "Decisions":
        """Returns the decisions of all parts."""
        return Decisions(
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.masks for part in parts]),
            np.concatenate([part.chosen for part in parts]),
        )


@dataclass(frozen=True)
class Iteration:
    """The result of one iteration.

    Attributes:
        decisions: the number of imitated decisions.
        shares: for each policy, the share of functions in which it is the best.
        agreement: the share of the imitated decisions that the network also makes.
        validation: the network's loss on the validation modules.
    """

    number: int
    decisions: int
    shares: tuple[float, ...]
    agreement: float
    validation: float


def record(module: Path, plugin: Path, spec: str, folder: Path) -> dict[str, Log]:
    """Allocates a module by a policy. Returns the logs of its functions by name.

    Functions without an eviction are left out.
    """
    log = folder / "log"
    options = [f"-mlbridge-eviction=record:{log}|{spec}", "-mlbridge-on-error=fatal"]
    found = costs_of([module], plugin, options)
    if not log.exists() or log.stat().st_size == 0:
        return {}
    arrays = read_log(log).as_arrays()
    parts = [arrays.features[name][:, 0] for name in COLUMNS_OF_EVICTIONS]
    progress = np.repeat(arrays.features["progress"].reshape(-1, 1), POSITIONS, axis=1)
    columns = np.stack([*parts, progress], axis=2).astype(np.float32)
    masks = arrays.features["mask"][:, 0] != 0
    chosen = arrays.advice.reshape(-1).astype(np.int64)
    contexts = np.array([name.rpartition(":")[2] for name in arrays.contexts])
    logs = {}
    for function in found:
        rows = contexts == function.function
        if rows.any():
            decisions = Decisions(columns[rows], masks[rows], chosen[rows])
            logs[function.function] = decisions, function.final
    return logs


def best_decisions(
    modules: Sequence[Path],
    plugin: Path,
    policies: Sequence[str],
    *,
    jobs: int = 1,
    show: Show = quiet,
) -> tuple[Decisions, tuple[float, ...]]:
    """Returns the decisions of the best policy of each function.

    Also returns the share of functions in which each policy is the best. In a tie, the
    first policy is the best.
    """

    def of_module(module: Path) -> list[tuple[int, Decisions]]:
        best: dict[str, tuple[float, int, Decisions]] = {}
        for number, policy in enumerate(policies):
            with TemporaryDirectory(prefix="mlbridge-imitation-") as folder:
                logs = record(module, plugin, policy, Path(folder))
            for name, (decisions, cost) in logs.items():
                if name not in best or cost < best[name][0] * (1 - 1e-9):
                    best[name] = cost, number, decisions
        return [(number, decisions) for _, number, decisions in best.values()]

    found: list[tuple[int, Decisions]] = []
    with ThreadPoolExecutor(jobs) as pool:
        for done, part in enumerate(pool.map(of_module, modules)):
            found += part
            show(done + 1, len(modules))
    numbers = [number for number, _ in found]
    shares = tuple(numbers.count(i) / len(numbers) for i in range(len(policies)))
    return Decisions.join([decisions for _, decisions in found]), shares


class _Scores(nn.Module):
    """`EvictionNetwork` in PyTorch, whose parameters are in the same order."""

    def __init__(self, network: EvictionNetwork, weights: Weights) -> None:
        super().__init__()
        for name, values in network.parts(weights).items():
            part = torch.tensor(values, dtype=torch.float32)
            self.register_parameter(name, nn.Parameter(part))

    def forward(self, columns: Tensor, masks: Tensor) -> Tensor:
        """Maps [N, 33, 20] to scores [N, 33]."""
        parts = dict(self.named_parameters())
        hidden = torch.tanh(columns @ parts["inner"] + parts["bias"])
        scores = columns @ parts["linear"] + hidden @ parts["outer"]
        return scores.squeeze(2).masked_fill(~masks, -1e9)

    def weights(self) -> Weights:
        """Returns the parameters as a vector, float64 [n]."""
        parts = [part.detach().numpy().ravel() for part in self.parameters()]
        return np.concatenate(parts).astype(np.float64)


def scores_of(
    network: EvictionNetwork, weights: Weights, decisions: Decisions
) -> NDArray[np.float32]:
    """Returns the scores of all positions by PyTorch, float32 [n, 33]."""
    with torch.inference_mode():
        scores: NDArray[np.float32] = _Scores(network, weights)(
            torch.from_numpy(decisions.columns), torch.from_numpy(decisions.masks)
        ).numpy()
    return scores


def imitate(
    network: EvictionNetwork, decisions: Decisions, options: ImitationOptions
) -> tuple[Weights, float]:
    """Trains the network from its start. Returns its weights and its agreement."""
    scores = _Scores(network, network.start)
    draw = np.random.default_rng(options.seed)
    columns = torch.from_numpy(decisions.columns)
    masks = torch.from_numpy(decisions.masks)
    chosen = torch.from_numpy(decisions.chosen)
    optimizer = torch.optim.Adam(scores.parameters(), lr=options.rate)
    for _ in range(options.epochs):
        order = draw.permutation(len(chosen))
        for begin in range(0, len(order), 256):
            rows = order[begin : begin + 256]
            loss = nn.functional.cross_entropy(
                scores(columns[rows], masks[rows]), chosen[rows]
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    weights = scores.weights()
    agrees = scores_of(network, weights, decisions).argmax(1) == decisions.chosen
    return weights, float(agrees.mean())


def train(
    training: Sequence[Path],
    validation: Sequence[Path],
    plugin: Path,
    policies: Sequence[str],
    options: ImitationOptions,
    folder: Path,
    *,
    jobs: int = os.cpu_count() or 1,
    show: Show = quiet,
) -> Iterator[tuple[Iteration, Weights]]:
    """Yields the iterations, each with the network's weights.

    `policies` are the specs of policies to imitate besides LLVM's own. The networks are
    written to `folder`.
    """
    pool = [STOCK, *policies]
    network = EvictionNetwork()
    for number in range(options.iterations):
        decisions, shares = best_decisions(training, plugin, pool, jobs=jobs, show=show)
        weights, agreement = imitate(network, decisions, options)
        pool.append(network.write(folder / f"iteration-{number}", weights))
        loss = losses(network, [weights], validation, plugin, jobs)[0][0]
        count = len(decisions.chosen)
        yield Iteration(number, count, shares, agreement, loss), weights
