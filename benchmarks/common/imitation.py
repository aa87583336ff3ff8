# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The imitation inliner for clang, and the C files that clang compiles with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .flows import in_process_spec
from .processes import in_checkout

MODEL = "models/inlining-imitation/inliner.onnx"


@dataclass(frozen=True)
class Model:
    """The imitation inliner, run by one runner."""

    runner: str  # In `cli.MODEL_RUNNERS`, or ``llvm`` for LLVM's own heuristic.
    spec: str


@dataclass(frozen=True)
class Source:
    """A C file, its flags for clang, and the name of its module."""

    name: str
    path: Path
    flags: tuple[str, ...] = ()


def models(runners: Sequence[str], folder: Path) -> list[Model]:
    """Returns the imitation inliner for each runner. See `in_process_spec`."""
    source = in_checkout(MODEL)
    return [
        Model(name, "" if name == "llvm" else in_process_spec(name, source, folder))
        for name in runners
    ]
