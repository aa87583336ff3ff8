# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The requests that are asked, and the answers that are right."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import ModelError

LENGTHS = tuple(range(500, 50_001, 500))  # Those of the paper's figure 5c.

MAX_LENGTH = 1 << 20

POLICIES = ("echo", "fc")  # What is asked: see `Workload.check`.


@dataclass(frozen=True)
class Workload:
    """Vectors of float32 of growing length: each is the front of the same one."""

    lengths: tuple[int, ...]
    features: NDArray[np.float32]
    weights: NDArray[np.float32]

    @classmethod
    def make(cls, lengths: tuple[int, ...]) -> Self:
        """The same numbers in every run: normally distributed, as embeddings are."""
        random = np.random.default_rng(2024)
        features = random.standard_normal(max(lengths)).astype(np.float32)
        weights = random.standard_normal(max(lengths)).astype(np.float32)
        return cls(lengths, features, weights)

    def save(self, folder: Path) -> None:
        """Writes what `load`, and rtt-client, read."""
        self.features.tofile(folder / "features.f32")
        self.weights.tofile(folder / "weights.f32")
        (folder / "lengths").write_text(",".join(map(str, self.lengths)))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote."""
        lengths = tuple(map(int, (folder / "lengths").read_text().split(",")))
        features = np.fromfile(folder / "features.f32", np.float32)
        return cls(lengths, features, np.fromfile(folder / "weights.f32", np.float32))

    @cached_property
    def _products(self) -> NDArray[np.float64]:
        return self.features.astype(np.float64) * self.weights

    def check(self, policy: str, replies: NDArray[np.float32]) -> None:
        """Holds the answers of a sweep, one a length, against the right ones."""
        ends = np.array(self.lengths) - 1
        if policy == "echo":
            right = self.features[ends].astype(np.float64)
            tolerance = np.zeros(len(ends))
        else:
            right = self._products.cumsum()[ends]
            # Of a sum of float32, in whatever order.
            tolerance = 1e-5 * np.abs(self._products).cumsum()[ends]
        self.compare(policy, self.lengths, replies, right, tolerance)

    @staticmethod
    def compare(
        policy: str,
        lengths: Sequence[int] | int,
        replies: NDArray[np.float32],
        right: NDArray[np.float64],
        tolerance: NDArray[np.float64],
    ) -> None:
        """Holds answers to so many features each against the right ones."""
        if replies.shape != right.shape:
            raise ModelError(
                f"a wrong answer of {policy}: expected {right.size} numbers, "
                f"found {replies.size}"
            )
        # This form finds NaN wrong, too.
        wrong = np.flatnonzero(~(np.abs(replies - right) <= tolerance))
        if len(wrong):
            i = wrong[0]
            length = lengths if isinstance(lengths, int) else lengths[i]
            raise ModelError(
                f"a wrong answer of {policy} to {length} features: "
                f"expected {right[i]:.9g}, found {replies[i]:.9g} "
                f"({len(wrong)} of {len(right)} answers are wrong)"
            )


def parse_lengths(text: str) -> tuple[int, ...]:
    """Reads ``500,5000`` or ``FIRST:LAST:STEP``, which includes the last."""
    if ":" in text:
        first, last, step = map(int, text.split(":"))
        lengths = tuple(range(first, last + 1, step))
    else:
        lengths = tuple(map(int, text.split(",")))
    if not lengths or min(lengths) < 1 or max(lengths) > MAX_LENGTH:
        raise ValueError(f"lengths are from 1 to {MAX_LENGTH}")
    return lengths
