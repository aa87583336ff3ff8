# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a state is worth, by what the compiler says of it: as its Reward.cpp has it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlbridge.errors import InvalidArgument

_KEYS = {
    "text-size": "text_size",
    "instructions": "instructions",
    "mca-cycles": "mca_cycles",
}
"""Of each measure in the compiler's info; of stock -Oz with ``oz_`` before it."""


@dataclass(frozen=True)
class Reward:
    """A weighted sum of sizes, each relative to that of stock -Oz."""

    weights: Mapping[str, float]  # By the measure's name.

    @classmethod
    def parse(cls, text: str) -> "Reward":
        """Such as ``text-size:10,mca-cycles:5``.

        Raises:
            InvalidArgument: it is none, or of no measure.
        """
        weights: dict[str, float] = {}
        for part in text.split(","):
            name, colon, number = part.partition(":")
            try:
                weight = float(number) if colon else 1.0
            except ValueError:
                weight = math.nan
            if name not in _KEYS or name in weights or not math.isfinite(weight):
                raise InvalidArgument(
                    f"reward '{text}': expected a list of {', '.join(_KEYS)}, each with"
                    f" a weight such as text-size:10, found '{part}'"
                )
            weights[name] = weight
        return cls(weights)

    def value(self, info: Mapping[str, Any]) -> float:
        """Of the state that an info is of: the more, the better."""
        return self._sum(info, "")

    def oz(self, info: Mapping[str, Any]) -> float:
        """Of what stock -Oz makes of the same module."""
        return self._sum(info, "oz_")

    def _sum(self, info: Mapping[str, Any], which: str) -> float:
        total = 0.0
        for name, weight in self.weights.items():
            stock = max(float(info["oz_" + _KEYS[name]]), 1.0)
            total -= weight * float(info[which + _KEYS[name]]) / stock
        return total
