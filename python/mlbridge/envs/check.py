# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ``check=True`` looks at: values that a learner does not expect.

Names, shapes and dtypes of an observation are always looked at: what is wrong with them
is a SchemaMismatch. Its values are not, since that takes 5 to 15 µs a step.
"""

import logging
import math
import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs.spaces import parts_of

logger = logging.getLogger("mlbridge.envs")


class ValueCheck:
    """Counts observations outside of their space, and rewards that are not finite.

    The first of each kind is logged as a warning that says where it is. The learner
    gets all of them as they are. One that nobody wants looks at nothing.

    Attributes:
        observations: how many were looked at.
        outside: of these, outside of the observation space.
        rewards: how many were looked at.
        non_finite: of these, NaN or infinite.
    """

    def __init__(
        self, owner: object, *, check: bool, command: Sequence[str], worker: int
    ) -> None:
        """Nothing was looked at yet; the arguments are an environment, and its own."""
        self.observations = self.outside = self.rewards = self.non_finite = 0
        program = Path(command[0]).name if command else "compiler"
        self._owner = f"{program} (worker {worker})"
        self._is_on = check
        self._process = os.getpid()
        self._reported = (0, 0)
        if check:
            # Also when the environment is forgotten, and when the interpreter ends.
            weakref.finalize(owner, self.report)

    def __repr__(self) -> str:
        if not self._is_on:
            return "<ValueCheck: off>"
        return (
            f"<ValueCheck: {self.outside} of {self.observations} observations outside, "
            f"{self.non_finite} of {self.rewards} rewards not finite>"
        )

    def observation(self, space: spaces.Space[Any], value: Any) -> None:
        """Looks at an observation of the space's shapes and dtypes."""
        if not self._is_on:
            return
        self.observations += 1
        if space.contains(value):
            return
        self.outside += 1
        if self.outside == 1:
            logger.warning(
                "%s: observation %d is outside of the observation space: %s",
                self._owner,
                self.observations,
                next(_outside(space, value), f"found {value!r:.200}"),
            )

    def reward(self, value: float) -> None:
        """Looks at a reward."""
        if not self._is_on:
            return
        self.rewards += 1
        if math.isfinite(value):
            return
        self.non_finite += 1
        if self.non_finite == 1:
            logger.warning(
                "%s: reward %d is %s; expected a finite number",
                self._owner,
                self.rewards,
                value,
            )

    def report(self) -> None:
        """Logs the counts as a warning, if there is something new to tell."""
        counts = self.outside, self.non_finite
        # A child that was forked off has counted nothing.
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
    """Of each tensor that is outside of its space: what was expected and found."""
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
    """The first number outside of a box, and its place."""
    # NaN is neither.
    wrong = ~((value >= space.low) & (value <= space.high))
    places = np.argwhere(wrong)
    if not len(places):
        return None
    place = tuple(int(index) for index in places[0])
    at = f" at [{', '.join(map(str, place))}]" if place else ""
    numbers = "number" if len(places) == 1 else "numbers"
    return f"{value[place]}{at}, and {len(places)} such {numbers} in all"
