# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies that answer several compilers at once."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from mlbridge.errors import SchemaMismatch
from mlbridge.types import Features

BatchPolicy = Callable[[Sequence[Features]], Sequence[Any]]
"""A function from the features of several requests to their answers, in order.

Each answer is what a `Policy` may return.
"""


class Batched:
    """A policy that takes several requests; `batched` makes one."""

    def __init__(self, policy: BatchPolicy) -> None:
        self._policy = policy
        update_wrapper(self, policy)

    def __call__(self, requests: Sequence[Features]) -> Sequence[Any]:
        """The answers, in the order of the requests."""
        return self._policy(requests)


def batched(policy: BatchPolicy) -> Batched:
    """Marks a policy that takes the requests of several compilers at once.

    Such as::

        @batched
        def decide(requests):
            features = stack(requests)
            return model(features["embedding"])

    A model that runs on a matrix takes hardly longer for 32 rows than for one, so one
    process can serve many compilers. How many requests come at once is for `serve` to
    say (``max_batch``, ``max_delay``).
    """
    return Batched(policy)


def stack(requests: Sequence[Features]) -> dict[str, Any]:
    """The features of several requests, each as one array with a row for each.

    A feature of shape (a, b) of n requests becomes an array of shape (n, a, b); a text
    or a list of texts becomes a list of n.

    Raises:
        SchemaMismatch: the requests differ in their features, or in a shape.
    """
    first = requests[0]
    stacked: dict[str, Any] = {}
    for features in requests:
        if features.keys() != first.keys():
            only = sorted(features.keys() ^ first.keys())
            raise SchemaMismatch(
                f"requests with different features cannot be stacked: {only} "
                "are not in all of them"
            )
    for name, example in first.items():
        if not isinstance(example, np.ndarray):
            stacked[name] = [features[name] for features in requests]
            continue
        for features in requests:
            found = features[name]
            if found.shape != example.shape:
                raise SchemaMismatch(
                    f"feature '{name}' cannot be stacked: expected the shape "
                    f"{example.shape} of the first request, found {found.shape}"
                )
        stacked[name] = np.stack([features[name] for features in requests])
    return stacked
