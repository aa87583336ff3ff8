# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The requests of a benchmark and the right replies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import ModelError

LENGTHS = tuple(range(500, 50_001, 500))  # As in figure 5c of the bridge's paper.
MAX_LENGTH = 1 << 20
POLICIES = ("echo", "fc")  # See `Workload.check`.


@dataclass(frozen=True)
class Workload:
    """The requests: prefixes of one vector of float32, with the given lengths."""

    lengths: tuple[int, ...]
    features: NDArray[np.float32]
    weights: NDArray[np.float32]

    @classmethod
    def make(cls, lengths: tuple[int, ...]) -> Self:
        """Draws normally distributed numbers, which are the same in every run."""
        random = np.random.default_rng(2024)
        features = random.standard_normal(max(lengths)).astype(np.float32)
        weights = random.standard_normal(max(lengths)).astype(np.float32)
        return cls(lengths, features, weights)

    def save(self, folder: Path) -> None:
        """Writes the files that `load` and rtt-client read."""
        self.features.tofile(folder / "features.f32")
        self.weights.tofile(folder / "weights.f32")
        (folder / "lengths").write_text(",".join(map(str, self.lengths)))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads the files that `save` has written."""
        lengths = tuple(map(int, (folder / "lengths").read_text().split(",")))
        features = np.fromfile(folder / "features.f32", np.float32)
        return cls(lengths, features, np.fromfile(folder / "weights.f32", np.float32))

    @cached_property
    def _products(self) -> NDArray[np.float64]:
        return self.features.astype(np.float64) * self.weights

    def check(self, policy: str, replies: NDArray[np.float32]) -> None:
        """Checks that the replies of a sweep, one per length, are right."""
        ends = np.array(self.lengths) - 1
        if policy == "echo":
            right = self.features[ends].astype(np.float64)
            tolerance = np.zeros(len(ends))
        else:
            right = self._products.cumsum()[ends]
            # The tolerance allows any order of summation in float32.
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
        """Checks that replies to requests of these lengths are right."""
        if replies.shape != right.shape:
            raise ModelError(
                f"a wrong answer of {policy}: expected {right.size} numbers, "
                f"found {replies.size}"
            )
        # Negate the comparison, so that NaN is also wrong.
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
    """Parses ``500,5000`` or ``FIRST:LAST:STEP``. LAST is included."""
    if ":" in text:
        first, last, step = map(int, text.split(":"))
        lengths = tuple(range(first, last + 1, step))
    else:
        lengths = tuple(map(int, text.split(",")))
    if not lengths or min(lengths) < 1 or max(lengths) > MAX_LENGTH:
        raise ValueError(f"lengths are from 1 to {MAX_LENGTH}")
    return lengths
