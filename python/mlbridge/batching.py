# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies that take the requests of several compilers at once."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from mlbridge.errors import SchemaMismatch
from mlbridge.types import Features

BatchPolicy = Callable[[Sequence[Features]], Sequence[Any]]
"""A function from the features of several requests to their advice, in order.

Each element is what a `Policy` may return.
"""


class Batched:
    """A policy that takes several requests; made by `batched`."""

    def __init__(self, policy: BatchPolicy) -> None:
        # Copies the attributes of `policy`, so it comes first.
        update_wrapper(self, policy)
        self._policy = policy

    def __call__(self, requests: Sequence[Features]) -> Sequence[Any]:
        """Returns the advice for each request, in order."""
        return self._policy(requests)


def batched(policy: BatchPolicy) -> Batched:
    """Marks a policy that takes the requests of several compilers at once.

    Example::

        @batched
        def decide(requests):
            features = stack(requests)
            return model(features["embedding"])

    A matrix of 32 rows takes a model hardly longer than one row, so batches let one
    process serve many compilers. The options ``max_batch`` and ``max_delay`` of `serve`
    limit the size of a batch and the wait for it.
    """
    return Batched(policy)


def stack(requests: Sequence[Features]) -> dict[str, Any]:
    """Stacks the features of n requests, whose names and shapes must be the same.

    An array of shape (a, b) becomes one of shape (n, a, b), any other feature a list.
    Raises SchemaMismatch if the requests differ.
    """
    first = requests[0]
    for features in requests:
        if only := sorted(features.keys() ^ first.keys()):
            raise SchemaMismatch(
                f"requests with different features cannot be stacked: {only} "
                "are not in all of them"
            )
    stacked: dict[str, Any] = {}
    for name, example in first.items():
        rows = stacked[name] = [features[name] for features in requests]
        if not isinstance(example, np.ndarray):
            continue
        for row in rows:
            if row.shape != example.shape:
                raise SchemaMismatch(
                    f"feature '{name}' cannot be stacked: expected the shape "
                    f"{example.shape} of the first request, found {row.shape}"
                )
        stacked[name] = np.stack(rows)
    return stacked
