# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the decisions in two training logs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlbridge.errors import SchemaMismatch
from mlbridge.log import Observation, TensorSpec, TrainingLog
from mlbridge.printable import name, names
from mlbridge.types import Feature


@dataclass(frozen=True)
class Difference:
    """A request whose decisions differ between two logs."""

    first: Observation
    """The request in the first log."""
    second: Observation
    """The request in the second log."""
    features: tuple[str, ...]
    """The features whose values differ."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two logs."""

    differences: list[Difference]
    """The requests whose decisions differ, in the order of the first log."""
    in_both: int
    """The number of requests that both logs contain."""
    only_in_first: int
    """The number of requests that only the first log contains."""
    only_in_second: int
    """The number of requests that only the second log contains."""


def compare(first: TrainingLog, second: TrainingLog) -> Comparison:
    """Compares the requests of two logs that have the same context and number.

    The number counts the requests of a context from 0, in the order of the log.

    Raises:
        SchemaMismatch: the logs do not have the same features and the same decision.
        Malformed: a log does not follow the format.
    """
    _expect_same_tensors(first, second)
    others = dict(_numbered(second))
    count = len(others)
    differences = []
    in_first = in_both = 0
    for key, observation in _numbered(first):
        in_first += 1
        other = others.pop(key, None)
        if other is None:
            continue
        in_both += 1
        if not _are_equal(observation.advice, other.advice):
            changed = tuple(
                feature
                for feature, value in observation.features.items()
                if not _are_equal(value, other.features[feature])
            )
            differences.append(Difference(observation, other, changed))
    return Comparison(differences, in_both, in_first - in_both, count - in_both)


def _expect_same_tensors(first: TrainingLog, second: TrainingLog) -> None:
    expected = {spec.name: spec for spec in first.features}
    found = {spec.name: spec for spec in second.features}
    path, other = name(str(second.path)), name(str(first.path))
    if missing := expected.keys() - found.keys():
        raise SchemaMismatch(
            f"{path}: expected the features of {other}, but these are missing: "
            f"{names(sorted(missing))}"
        )
    if extra := found.keys() - expected.keys():
        raise SchemaMismatch(
            f"{path}: expected the features of {other}, but found more: "
            f"{names(sorted(extra))}"
        )
    for feature, spec in expected.items():
        _expect_same_type(f'{path}: feature "{name(feature)}"', spec, found[feature])
    if first.advice.name != second.advice.name:
        raise SchemaMismatch(
            f'{path}: expected the decision "{name(first.advice.name)}" of {other}, '
            f'found "{name(second.advice.name)}"'
        )
    _expect_same_type(
        f'{path}: decision "{name(first.advice.name)}"', first.advice, second.advice
    )


def _expect_same_type(what: str, expected: TensorSpec, found: TensorSpec) -> None:
    if str(expected) != str(found):
        raise SchemaMismatch(f"{what}: expected {expected}, found {found}")


def _numbered(log: TrainingLog) -> Iterator[tuple[tuple[str, int], Observation]]:
    # Count the requests here, because a log may begin a context again at number 0.
    counts = Counter[str]()
    for observation in log:
        yield (observation.context, counts[observation.context]), observation
        counts[observation.context] += 1


def _are_equal(one: Feature, other: Feature) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other
