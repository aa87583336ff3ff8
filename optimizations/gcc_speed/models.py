# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers the requests of gcc's plug-in with any function."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import mlbridge
from mlbridge.files import OwnFolder

DECISIONS = ("inline", "unroll", "flags", "gates")

GCC_DECIDES = {"inline": 2, "unroll": 0, "flags": 0, "gates": 1}

Answer = Callable[[str, mlbridge.Features], int]
"""Maps a decision and the features of a request to a reply."""


def decision_of(features: mlbridge.Features) -> str:
    """Returns the decision that a request is about."""
    marks = {"callee_users": "inline", "iterations": "unroll", "pass": "gates"}
    return next((name for mark, name in marks.items() if mark in features), "flags")


class Served:
    """A server whose answers can be replaced between compiles."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.answer: Answer = lambda decision, features: GCC_DECIDES[decision]
        self.counts = dict.fromkeys(DECISIONS, 0)

    def __call__(self, features: mlbridge.Features) -> np.int32:
        """Answers a request."""
        decision = decision_of(features)
        self.counts[decision] += 1
        return np.int32(self.answer(decision, features))

    def flags(self, plugin: Path, decisions: Sequence[str] = DECISIONS) -> list[str]:
        """Returns the flags with which gcc asks this server."""
        arguments = (f"-fplugin-arg-mlbridge-{one}={self.spec}" for one in decisions)
        return [f"-fplugin={plugin.resolve()}", *arguments]


@contextmanager
def served() -> Iterator[Served]:
    """Serves answers while the body of a ``with`` runs. One gcc may run at a time."""
    with OwnFolder("mlbridge-gcc-") as folder:
        server = Served(f"shm:{folder.path / 'model'}")
        with mlbridge.serving(server, server.spec):
            yield server
