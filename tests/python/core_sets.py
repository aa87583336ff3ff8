# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for the tests of phase ordering's training and evaluation."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge_optimizations import corpus
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.evaluation.evaluate import (
    Evaluation,
    EvaluationSettings,
    Way,
    evaluate,
)
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet
from mlbridge_optimizations.phase_ordering.model.model import Model
from mlbridge_optimizations.phase_ordering.search import coreset, value
from mlbridge_optimizations.phase_ordering.search.measurements import Table
from mlbridge_optimizations.phase_ordering.search.search import SearchSettings
from programs import IS_FULL

SMALL = 1500
"""The number of instructions of the largest module that most tests use."""
STEPS = EpisodeOptions(observation=("step",), reward="none", steps=8)


def records(log: Path) -> list[Any]:
    """Returns the values of a .jsonl file."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def core_settings(folder: Path, out: Path) -> coreset.CoreSetSettings:
    return coreset.CoreSetSettings(
        folder,
        out,
        count=4,
        searched=6 if IS_FULL else 4,
        most=SMALL,
        search=SearchSettings(evaluations=12, length=8),
        value=value.ValueSettings(epochs=40, members=2, hidden=16),
        jobs=2,
    )


def modules(folder: Path) -> list[Path]:
    return list(corpus.load(folder).modules("training", most=SMALL))


def table_of(sizes: list[list[float]], programs: list[str]) -> Table:
    array = np.array(sizes)
    orders: list[tuple[int, ...]] = [(n,) for n in range(array.shape[1])]
    names = [f"{p}/{n}.bc" for n, p in enumerate(programs)]
    return Table(names, programs, orders, array, np.full(len(sizes), 100.0))


def evaluated(
    found: corpus.Corpus, model: Model, core: CoreSet, **settings: Any
) -> tuple[Evaluation, dict[str, Way]]:
    """Returns an evaluation with two tries, and the compared ways by name."""
    wanted = EvaluationSettings(2, levels=(), **settings)
    result = evaluate(found, None, model, core, wanted)
    return result, {way.name: way for way in result.ways}


def pipeline_of(space: ActionSpace, order: tuple[int, ...]) -> str:
    return ",".join(space.actions[action].pipeline for action in order)
