# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives each action its own reward, if the compiler sends these rewards at the end."""

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

KEY = "credits"
"""The key in an episode's last info, for one number per action of the episode."""


class Credits(BaseCallback):
    """Replaces the rewards of PPO and A2C with the credits of the episodes.

    A compiler often measures its result only at the end of an episode, so all rewards
    but the last are 0. The credits are the parts of the last reward that the actions
    have earned. The last action also gets the difference between the last reward and
    the sum of the credits. So the return stays the same if the learner has collected
    the whole episode.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[tuple[int, int, Any]] = []
        """For each episode that has ended: its last row, its compiler, its credits."""

    def _on_rollout_start(self) -> None:
        self._ends.clear()

    def _on_step(self) -> bool:
        for worker, info in enumerate(self.locals["infos"]):
            if info.get(KEY):
                row = self.locals["n_steps"]
                self._ends.append((row, worker, np.asarray(info[KEY], np.float32)))
        return True

    def _on_rollout_end(self) -> None:
        if not self._ends:
            return
        buffer = self.locals["rollout_buffer"]
        for last, worker, found in self._ends:
            # The earlier actions are not in the buffer.
            own = found[-(last + 1) :]
            rewards = buffer.rewards[last + 1 - len(own) : last + 1, worker]
            rewards[-1] -= found.sum()
            rewards += own
        buffer.compute_returns_and_advantage(
            last_values=self.locals["values"], dones=self.locals["dones"]
        )
