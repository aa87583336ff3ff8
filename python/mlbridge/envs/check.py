# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the values of observations and rewards if ``check=True``.

This check is optional, because it takes 5 to 15 µs per step. Names, shapes and dtypes
are always checked, and a mismatch raises SchemaMismatch.
"""

import logging
import math
import os
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs.spaces import parts_of

logger = logging.getLogger("mlbridge.envs")


class ValueCheck:
    """Counts observations outside of their space, and rewards that are not finite.

    A warning is logged for the first such observation and the first such reward.

    Attributes:
        observations: the number of observations checked.
        outside: the number of observations outside of the observation space.
        rewards: the number of rewards checked.
        non_finite: the number of rewards that were NaN or infinite.
    """

    def __init__(self, owner: object, name: str, *, check: bool) -> None:
        """Stores an environment and its name. Checks nothing if ``check`` is false."""
        self.observations = self.outside = self.rewards = self.non_finite = 0
        self._owner = name
        self._is_on = check
        self._process = os.getpid()
        self._reported = (0, 0)
        if check:
            # Report also if the user does not call close().
            weakref.finalize(owner, self.report)

    def __repr__(self) -> str:
        if not self._is_on:
            return "<ValueCheck: off>"
        return (
            f"<ValueCheck: {self.outside} of {self.observations} observations outside, "
            f"{self.non_finite} of {self.rewards} rewards not finite>"
        )

    def observation(self, space: spaces.Space[Any], value: Any) -> None:
        """Checks an observation whose shapes and dtypes are correct."""
        if not self._is_on:
            return
        self.observations += 1
        is_outside = not space.contains(value)
        self.outside += is_outside
        if is_outside and self.outside == 1:
            logger.warning(
                "%s: observation %d is outside of the observation space: %s",
                self._owner,
                self.observations,
                next(_outside(space, value), f"found {value!r:.200}"),
            )

    def reward(self, value: float) -> None:
        """Checks a reward."""
        if not self._is_on:
            return
        self.rewards += 1
        is_wrong = not math.isfinite(value)
        self.non_finite += is_wrong
        if is_wrong and self.non_finite == 1:
            text = "%s: reward %d is %s; expected a finite number"
            logger.warning(text, self._owner, self.rewards, value)

    def report(self) -> None:
        """Logs the counts as a warning if they have changed since the last report."""
        counts = self.outside, self.non_finite
        # Do not report in a forked child, because its parent reports these counts.
        if counts == self._reported or self._process != os.getpid():
            return
        self._reported = counts
        logger.warning(
            "%s: %d of %d observations were outside of the observation space, and %d of"
            " %d rewards were not finite",
            self._owner,
            self.outside,
            self.observations,
            self.non_finite,
            self.rewards,
        )


def _outside(space: spaces.Space[Any], value: Any, name: str = "") -> Iterator[str]:
    """Yields an error message for each tensor that is outside of its space."""
    parts = parts_of(space)
    if parts is None:
        if not space.contains(value):
            found = _outlier(space, value) if isinstance(space, spaces.Box) else None
            found = found or f"{value!r:.200}"
            subject = f"{name!r}: " if name else ""
            yield f"{subject}expected {space!s:.200}, found {found}"
        return
    for key, part in parts:
        own = value[int(key)] if isinstance(space, spaces.Tuple) else value[key]
        yield from _outside(part, own, f"{name}.{key}" if name else key)


def _outlier(space: spaces.Box, value: Any) -> str | None:
    """Describes the first element that is outside of a box, with its index."""
    # Negate the test for inside, because comparisons with NaN are false.
    found = np.argwhere(~((value >= space.low) & (value <= space.high)))
    if not len(found):
        return None
    index = tuple(found[0].tolist())
    at = f" at {list(index)}" if index else ""
    numbers = "number" if len(found) == 1 else "numbers"
    return f"{value[index]}{at}, and {len(found)} such {numbers} in all"
