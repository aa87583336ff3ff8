# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluation: episodes of models and baselines, with confidence intervals.

Intervals are the middle 95 % of a bootstrap's draws.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 4000  # The bootstrap's number of draws.


def middle(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the middle 95 % of draws."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def mean_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Returns the middle 95 % of the means of resampled values."""
    array = np.asarray(values, float)
    draw = np.random.default_rng(seed)
    chosen = draw.integers(0, len(array), (DRAWS, len(array)))
    return middle(array[chosen].mean(axis=1))
