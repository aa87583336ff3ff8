# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies for each of LLVM's advisors. A policy maps features to advice."""

import numpy as np

from mlbridge import Features, Policy
from mlbridge.interactive import AdvisorName


def inline_small(features: Features) -> bool:
    """Inlines callees that have one block, and callees that have no other caller."""
    is_last = features["last_call_to_static_bonus"] > 0
    return bool(features["callee_basic_block_count"] == 1 or is_last)


def evict_lightest(features: Features) -> int:
    """Evicts the candidate with the lowest density of uses."""
    density = np.where(features["mask"], features["use_def_density"], np.inf)
    return int(density.argmin())


def heaviest_first(features: Features) -> float:
    """Prefers high spill costs, up to a limit, because a weight can be infinite."""
    return min(float(features["weight"][0]) * 1000, 4e9)


def policies(advisor: AdvisorName, seed: int) -> dict[str, Policy]:
    """Returns the advisor's policies by name. Random policies use the seed."""
    draw = np.random.default_rng(seed)
    known: dict[AdvisorName, dict[str, Policy]] = {
        "inliner": {
            "stock": lambda features: None,  # Defers to LLVM.
            "never": lambda features: False,
            "small": inline_small,
            "random": lambda features: bool(draw.integers(2)),
        },
        "eviction": {
            "first": lambda features: int(features["mask"].argmax()),
            "lightest": evict_lightest,
            "random": lambda features: draw.choice(np.flatnonzero(features["mask"])),
        },
        "priority": {
            "largest": lambda features: features["li_size"],  # Similar to LLVM.
            "heaviest": heaviest_first,
            "random": lambda features: float(draw.random() * 1e6),
        },
    }
    return known[advisor]
