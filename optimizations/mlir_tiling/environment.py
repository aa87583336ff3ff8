# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiling as an environment with episodes of one step, on measured times.

An observation has ``choice_features`` float32 [160, 44] and ``action_mask`` float32
[160]: 1 for each choice of a kernel. The action is the number of a choice. The reward
is log(time of the untiled kernel / time), from -1 to 3. No compiler runs.
"""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.mlir_tiling.table import Entry

CHOICES, COLUMNS = 160, 44
"""The maximum number of choices, and the number of columns (compilers/mlir)."""

Observation = dict[str, Any]


class TilingEnv(gymnasium.Env[Observation, np.int64]):
    """Chooses tilings of measured kernels."""

    observation_space = spaces.Dict(
        {
            "choice_features": spaces.Box(
                -np.inf, np.inf, (CHOICES, COLUMNS), np.float32
            ),
            "action_mask": spaces.Box(0, 1, (CHOICES,), np.float32),
        }
    )
    action_space = spaces.Discrete(CHOICES)

    def __init__(self, entries: Sequence[Entry]) -> None:
        """Raises InvalidArgument if no kernel has been measured."""
        self._entries = [entry for entry in entries if entry.ratios]
        if not self._entries:
            raise InvalidArgument(
                "expected measured kernels, found none; measure some with `mlbridge"
                " search mlir-tiling-times`"
            )
        self._entry = self._entries[0]

    def _observe(self) -> Observation:
        rows = self._entry.rows
        features = np.zeros((CHOICES, COLUMNS), np.float32)
        features[: len(rows)] = rows
        mask = (np.arange(CHOICES) < len(rows)).astype(np.float32)
        return {"choice_features": features, "action_mask": mask}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts with a random kernel."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(len(self._entries)))
        self._entry = self._entries[drawn]
        return self._observe(), {"kernel": self._entry.kernel}

    def step(
        self, action: np.int64
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Ends the episode. A number without a choice leaves the nest as it is."""
        ratios = self._entry.ratios
        ratio = ratios[int(action)] if int(action) < len(ratios) else 1.0
        reward = min(max(-math.log(ratio), -1.0), 3.0)
        return self._observe(), reward, True, False, {"ratio": ratio}
