# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies for each of LLVM's advisors: functions from features to an answer."""

from typing import Any

import numpy as np

from mlbridge import Features, Policy
from mlbridge.interactive import AdvisorName


class Random:
    """Any legal answer, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def inline(self, features: Features) -> bool:
        """One call of two."""
        return bool(self._random.integers(2))

    def evict(self, features: Features) -> Any:
        """One of the candidates."""
        return self._random.choice(np.flatnonzero(features["mask"]))

    def prioritise(self, features: Features) -> float:
        """Any order."""
        return float(self._random.random() * 1e6)


def inline_stock(features: Features) -> None:
    """LLVM's own decision."""


def inline_never(features: Features) -> bool:
    """No call that LLVM asks about."""
    return False


def inline_small(features: Features) -> bool:
    """Callees that are one block, and those that vanish since nobody else calls."""
    is_last = features["last_call_to_static_bonus"] > 0
    return bool(features["callee_basic_block_count"] == 1 or is_last)


def evict_first(features: Features) -> int:
    """The first candidate, whoever that is."""
    return int(features["mask"].argmax())


def evict_lightest(features: Features) -> int:
    """The candidate that is used least for its length."""
    density = np.where(features["mask"], features["use_def_density"], np.inf)
    return int(density.argmin())


def largest_first(features: Features) -> Any:
    """As LLVM does by and large."""
    return features["li_size"]


def heaviest_first(features: Features) -> float:
    """What costs most to spill; LLVM gives what must not be spilled infinite weight."""
    return min(float(features["weight"][0]) * 1000, 4e9)


def policies(advisor: AdvisorName, seed: int) -> dict[str, Policy]:
    """The policies for an advisor, by name."""
    chance = Random(seed)
    known: dict[AdvisorName, dict[str, Policy]] = {
        "inliner": {
            "stock": inline_stock,
            "never": inline_never,
            "small": inline_small,
            "random": chance.inline,
        },
        "eviction": {
            "first": evict_first,
            "lightest": evict_lightest,
            "random": chance.evict,
        },
        "priority": {
            "largest": largest_first,
            "heaviest": heaviest_first,
            "random": chance.prioritise,
        },
    }
    return known[advisor]
