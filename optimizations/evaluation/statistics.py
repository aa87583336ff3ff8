# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes confidence intervals: the middle 95 % of the draws of a bootstrap."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 4000  # The number of draws of a bootstrap.


def middle(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the limits of the middle 95 % of the drawn values."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def median_interval(
    values: NDArray[np.float64], draws: int = DRAWS
) -> tuple[float, float]:
    """Returns the 95 % interval of the median of `values`, by resampling them."""
    chosen = np.random.default_rng(0).choice(values, (draws, len(values)))
    return middle(np.median(chosen, axis=1))


def mean_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Returns the 95 % interval of the mean of `values`, by resampling them."""
    array = np.asarray(values, float)
    draw = np.random.default_rng(seed)
    chosen = draw.integers(0, len(array), (DRAWS, len(array)))
    return middle(array[chosen].mean(axis=1))
