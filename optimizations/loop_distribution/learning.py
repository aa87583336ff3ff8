# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the networks on measured times.

The legal choices of each loop have been measured (table.py), so the loss of a loop uses
all its choices, rather than samples. The loss has two parts: the error of the estimated
times, and the expected time if a softmax of the estimates draws the choice.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mlbridge.export import Metadata, Training
from mlbridge_optimizations.show import Show, quiet

from .kernels import kernels
from .networks import (
    CyclesRule,
    DistributionNetwork,
    FactorsNetwork,
    Features,
    write,
)
from .settings import DECISIONS, LoopCosts
from .table import Choices, Entry

Network = DistributionNetwork | FactorsNetwork

NETWORKS: dict[str, type[Network]] = {
    "distribution": DistributionNetwork,
    "factors": FactorsNetwork,
}

RULE_MARGIN = 0.1
"""The least saving, in log(cycles), for which the rule distributes a loop."""

_INTEGERS = ("edges", "distributions", "choices")


@dataclass(frozen=True)
class Example:
    """A measured loop.

    Attributes:
        features: the network's inputs.
        options: the measured choices, int64 [o]. The first choice is stock clang's.
        logs: log(time / stock clang's time) of each option, float32 [o].
    """

    kernel: str
    level: str
    features: Features
    options: Tensor
    logs: Tensor


def features_of(decision: str, given: dict[str, Any]) -> dict[str, Tensor]:
    """Returns a network's features from `given`, which the plug-in has printed."""
    found = {}
    for name in NETWORKS[decision].inputs:
        kind = torch.int32 if name in _INTEGERS else torch.float32
        found[name] = torch.tensor(given[name], dtype=kind)
    if not len(given["edges"]):
        found["edges"] = torch.zeros((0, 3), dtype=torch.int32)
    return found


def examples(entries: Iterable[Entry], decision: str) -> list[Example]:
    """Returns the loops with more than one option for a decision."""
    found = []
    for entry in entries:
        for loop in entry.loops:
            if loop.decision == decision and len(loop.options) > 1:
                found.append(_example(entry, loop))
    return found


def _example(entry: Entry, loop: Choices) -> Example:
    return Example(
        entry.kernel,
        entry.level,
        features_of(loop.decision, loop.features),
        torch.tensor(loop.options),
        torch.tensor(np.log(loop.ratios), dtype=torch.float32),
    )


def estimates(network: Network, batch: Sequence[Example]) -> Iterator[Tensor]:
    """Yields the estimates for each example's options, float32 [o].

    The graphs of a batch are encoded together, as parts of one graph.
    """
    counts = [len(one.features["nodes"]) for one in batch]
    starts = np.cumsum([0, *counts[:-1]])
    edges = []
    for one, start in zip(batch, starts, strict=True):
        shift = torch.tensor([start, start, 0], dtype=torch.int32)
        edges.append(one.features["edges"] + shift)
    nodes = torch.cat([one.features["nodes"] for one in batch])
    states = network.encoder(nodes, torch.cat(edges)).split(counts)
    for one, state in zip(batch, states, strict=True):
        yield network.estimate(state, one.features)[one.options]


def loss_of(estimate: Tensor, logs: Tensor, options: LoopCosts) -> Tensor:
    """Returns the loss of one example."""
    wanted = logs.clamp(-1.0, 1.0)
    error = nn.functional.smooth_l1_loss(estimate, wanted, beta=0.1)
    chances = torch.softmax(-estimate / options.temperature, dim=0)
    return error + options.expectation * (chances * wanted).sum()


def train(
    decision: str,
    given: Sequence[Example],
    options: LoopCosts,
    seed: int,
) -> Network:
    """Trains a network on all examples."""
    torch.manual_seed(seed)
    draw = random.Random(seed)
    network = NETWORKS[decision](options.hidden, options.steps)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    order = list(given)
    batches = -(-len(order) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.epochs * batches
    )
    for _ in range(options.epochs):
        draw.shuffle(order)
        for begin in range(0, len(order), options.batch):
            batch = order[begin : begin + options.batch]
            found = estimates(network, batch)
            loss = torch.stack(
                [
                    loss_of(estimate, one.logs, options)
                    for estimate, one in zip(found, batch, strict=True)
                ]
            ).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return network


def write_model(
    decision: str,
    given: Sequence[Example],
    options: LoopCosts,
    file: Path,
    *,
    seed: int = 0,
    show: Show = quiet,
) -> None:
    """Trains an ensemble on all examples, and writes it to an .onnx file."""
    members: list[Network] = []
    for number in range(options.members):
        members.append(train(decision, given, options, seed + number))
        show(number + 1, options.members)
    about = Metadata(reward="-log(time)", training=Training(seed=seed))
    write(decision, members, options.margin, file, about)


def fold_models(
    entries: Sequence[Entry],
    fold: int,
    options: LoopCosts,
    folder: Path,
    *,
    show: Show = quiet,
) -> dict[str, Path]:
    """Returns the models that were not trained on a fold's families, by decision.

    Models that the folder lacks are trained. Each kernel of the suites has twice the
    weight of a generated kernel, because the suites have fewer kernels. The model
    ``rule`` chooses the distribution with the fewest estimated cycles.
    """
    known = kernels()
    seen = [e for e in entries if e.kernel not in known or known[e.kernel].fold != fold]
    again = [entry for entry in seen if entry.kernel in known]
    files = {name: folder / f"{name}.onnx" for name in (*DECISIONS, "rule")}
    for decision in DECISIONS:
        if not files[decision].exists():
            given = examples([*seen, *again], decision)
            write_model(decision, given, options, files[decision], show=show)
    if not files["rule"].exists():
        write("distribution", [CyclesRule()], RULE_MARGIN, files["rule"])
    return files
