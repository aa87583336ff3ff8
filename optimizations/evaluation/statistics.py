# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes confidence intervals by bootstrap or with Student's t distribution."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

DRAWS = 4000  # The number of draws of a bootstrap.

# The 97.5 % quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


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


def few_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns Student's 95 % interval of the mean of 2 to 10 values, one per seed.

    The bootstrap's interval of so few values would be too narrow. For more than 10
    values, this interval would be slightly too wide.
    """
    quantile = _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1]
    middle, half = fmean(values), quantile * stdev(values) / math.sqrt(len(values))
    return middle - half, middle + half
