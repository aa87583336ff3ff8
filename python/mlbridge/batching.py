# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batched policies, which answer several requests in one call."""

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge.types import Features

BatchPolicy = Callable[[Sequence[Features]], Sequence[Any]]
"""A function that receives a list of requests and returns a list of advice.

Element i of the result is the advice for request i, as a `Policy` would return it.
"""


class Batched:
    """A policy that answers several requests in one call. Use `batched` to make one."""

    def __init__(self, policy: BatchPolicy) -> None:
        # Call this first, because it may overwrite attributes that this object already
        # has.
        update_wrapper(self, policy)
        self._policy = policy

    def __call__(self, requests: Sequence[Features]) -> Sequence[Any]:
        """Returns the advice for each request, in the order of the requests.

        Raises InvalidArgument if the argument is a dict, for example one request.
        """
        if isinstance(requests, Mapping):
            raise InvalidArgument(
                "expected a list of requests, found a dict; for one request, call "
                "policy([features])[0]"
            )
        return self._policy(requests)


def batched(policy: BatchPolicy) -> Batched:
    """Marks a policy that answers the requests of several compilers in one call.

    Example::

        @batched
        def decide(requests):
            features = stack(requests)
            return model(features["embedding"])

    A neural network needs little more time for 32 rows than for one. Batches therefore
    let one process serve many compilers. ``max_batch`` and ``max_delay`` of `serve`
    limit the size of a batch and the wait for more requests.
    """
    return Batched(policy)


def stack(requests: Sequence[Features]) -> dict[str, Any]:
    """Stacks the features of n requests.

    A feature of shape (a, b) becomes an array of shape (n, a, b). A string feature
    becomes a list. Raises SchemaMismatch if the requests' names or shapes differ.
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
