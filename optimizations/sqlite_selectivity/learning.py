# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the model on conditions whose selectivities are counted in the tables."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mlbridge_optimizations.show import ShowStage, quiet

from .features import Rows, joined
from .networks import SelectivityModel
from .settings import LearningOptions
from .synopsis import Known
from .tables import Table, quoted
from .terms import Term, draw_term

COLUMNS = 200
"""The number of conditions that one query evaluates."""
MOST_TERMS = 4
TOGETHER = 64
"""The number of conjunctions that are evaluated together."""
VALIDATED = 0.1
"""The share of examples for validation."""

Ask = Callable[[Sequence[str]], list[Rows | None]]


@dataclass
class Pool:
    """Conditions on a table.

    Attributes:
        features: the features of each condition alone.
        accepts: bool [terms, rows], whether a row satisfies a condition.
        groups: groups of conditions whose literals come from the same row.
    """

    table: Table
    features: list[Rows]
    accepts: NDArray[np.bool_]
    groups: list[list[int]]


def pool_of(
    table: Table, known: Sequence[Known], ask: Ask, options: LearningOptions
) -> Pool:
    """Draws conditions on a table, and evaluates them on its rows."""
    draw = random.Random(f"{options.seed} {table.name}")
    columns = [one for one in known if one.expression.is_column]
    terms, groups = list[Term](), list[list[int]]()
    while len(terms) < options.terms:
        row = draw.randrange(len(table.sample))
        group = list[int]()
        for _ in range(MOST_TERMS):
            one = draw.choice(columns if draw.random() < 0.6 else known)
            group.append(len(terms))
            value, other = one.values[row], draw.choice(one.values)
            terms.append(draw_term(draw, one.expression, value, other))
        groups.append(group)
    name = quoted(table.name)
    asked = ask([f"select 1 from {name} where {term.sql}" for term in terms])
    kept = {i: k for k, i in enumerate(i for i, rows in enumerate(asked) if rows)}
    texts = [terms[i].sql for i in kept]
    return Pool(
        table,
        [rows for rows in asked if rows],
        _accepts(table, texts, options.counted),
        [[kept[i] for i in group if i in kept] for group in groups],
    )


def _accepts(table: Table, terms: Sequence[str], rows: int) -> NDArray[np.bool_]:
    found = []
    with closing(table.memory(table.sample[-rows:])) as made:
        for begin in range(0, len(terms), COLUMNS):
            listed = ", ".join(f"({one}) is true" for one in terms[begin:][:COLUMNS])
            cursor = made.execute(f"select {listed} from {quoted(table.name)}")
            found.append(np.array(cursor.fetchall(), bool).T)
    return np.concatenate(found)


@dataclass
class Examples:
    """The training data of the network: n terms.

    Attributes:
        inputs: the network's inputs, float [n, INPUTS].
        base: the logarithms of the estimates without the network, float [n].
        wanted: the logarithms of the counted selectivities, float [n].
    """

    inputs: Tensor
    base: Tensor
    wanted: Tensor


def examples_of(
    model: SelectivityModel, pool: Pool, options: LearningOptions
) -> Examples:
    """Joins conditions to conjunctions. Each term of a conjunction is an example.

    Its selectivity is counted among the rows that satisfy all earlier terms.
    """
    draw = random.Random(f"{options.seed} {pool.table.name} conjunctions")
    numbers = range(len(pool.features))
    rows = pool.accepts.shape[1]
    parts, wanted = [], []
    for _ in range(options.conjunctions):
        count = draw.choice((1, 1, 2, 2, 3, 4))
        chosen = draw.sample(numbers, min(count, len(numbers)))
        if draw.random() < 0.7:
            group = draw.choice(pool.groups)
            chosen = draw.sample(group, min(count, len(group)))
        if not chosen:
            continue
        both = np.ones(rows, bool)
        for number in chosen:
            before = both.sum()
            both = both & pool.accepts[number]
            # Add half a row, because log(0) is not finite.
            wanted.append(np.log((both.sum() + 0.5) / (before + 1.0)))
        together = joined([pool.features[number] for number in chosen])
        together["tables"][:] = 0
        parts.append(together)
    inputs, base = zip(*_described(model, parts), strict=True)
    return Examples(
        torch.cat(inputs), torch.cat(base), torch.tensor(wanted, dtype=torch.float32)
    )


def _described(
    model: SelectivityModel, parts: Sequence[Rows]
) -> Iterator[tuple[Tensor, Tensor]]:
    names = [feature.name for feature in model.features]
    for begin in range(0, len(parts), TOGETHER):
        rows = joined(parts[begin:][:TOGETHER])
        with torch.no_grad():
            given = (torch.from_numpy(rows[name]) for name in names)
            terms = model.describe(*given)
        yield terms.inputs, terms.base


@dataclass(frozen=True)
class Epoch:
    """Errors after an epoch, as factors between estimates and counts.

    Attributes:
        loss: the mean loss of the training.
        median: the median error of the validation examples.
        most: the 90th percentile of their errors.
        base_median: the median error of estimates without the network.
        base_most: the 90th percentile of errors without the network.
    """

    loss: float
    median: float
    most: float
    base_median: float
    base_most: float


def _factors(estimates: Tensor, wanted: Tensor) -> tuple[float, float]:
    errors = torch.abs(torch.clamp(estimates, max=0.0) - wanted).numpy()
    return float(np.exp(np.median(errors))), float(np.exp(np.quantile(errors, 0.9)))


def train(
    model: SelectivityModel,
    examples: Examples,
    options: LearningOptions,
    show: ShowStage = quiet,
) -> list[Epoch]:
    """Trains the model's network. Returns its learning curve."""
    torch.manual_seed(options.seed)
    count = len(examples.wanted)
    # Draw the validation examples at random.
    order = torch.randperm(count)
    held = max(1, int(VALIDATED * count))
    checked, learned = order[:held], order[held:]
    batches = -(-len(learned) // options.batch)
    optimizer = torch.optim.AdamW(model.layers.parameters(), lr=options.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.epochs * batches
    )
    base = _factors(examples.base[checked], examples.wanted[checked])
    curve = []
    for epoch in range(options.epochs):
        total = 0.0
        for chosen in _batches(learned, options.batch):
            loss = _loss(model, examples, chosen)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        with torch.no_grad():
            more = model.layers(examples.inputs[checked])[:, 0]
        found = more + examples.base[checked]
        errors = _factors(found, examples.wanted[checked])
        curve.append(Epoch(total / len(learned), *errors, *base))
        show("Epochs", epoch + 1, options.epochs)
    return curve


def _batches(given: Tensor, size: int) -> Iterator[Tensor]:
    """Yields the elements in random order."""
    order = given[torch.randperm(len(given))]
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _loss(model: SelectivityModel, examples: Examples, chosen: Tensor) -> Tensor:
    """Returns the error of the estimates, plus the error of the expected errors."""
    found = model.layers(examples.inputs[chosen])
    wanted = examples.wanted[chosen]
    estimates = examples.base[chosen] + found[:, 0]
    error = nn.functional.smooth_l1_loss(estimates, wanted, beta=0.5)
    actual = torch.abs(estimates.detach() - wanted)
    expected = nn.functional.smooth_l1_loss(torch.exp(found[:, 1]), actual)
    return error + expected
