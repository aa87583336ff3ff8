# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop distribution as an environment of two agents, on measured times.

An episode is the distribution of one loop. The agents take turns, as in the bridge's
paper. They receive the features that the plug-in sends in a dialogue
(compilers/llvm/LoopDistribution/LoopModels.h). No compiler runs during training,
because the times of the legal distributions are in a table (table.py).

=========  ===========================================  ===========================
agent      observation                                  action
=========  ===========================================  ===========================
node       nodes float32 [n, 25], seeds int32 [s],      the seed that comes next
           loop_of int32 [n]
partition  the same, node int32                         0: same loop, 1: a new loop
=========  ===========================================  ===========================

Each observation also has ``action_mask`` float32 [actions]: 1 where an action is legal.
``loop_of`` is -1 for nodes without a loop.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from mlbridge.envs import Padded
from mlbridge.errors import InvalidArgument

from .networks import MOST_SEEDS, NODE_COLUMNS
from .table import Choices, Entry

NODES = 96
"""The maximum number of nodes. Larger loops are left out."""


def observation_spaces() -> dict[str, Padded]:
    """Returns the observation space of each agent."""

    def rows(*shape: int, kind: Any = np.float32, low: float = -np.inf) -> Any:
        high = np.inf if kind is np.float32 else NODES
        return spaces.Sequence(spaces.Box(low, high, shape, kind), stack=True)

    common = {
        "nodes": rows(NODE_COLUMNS),
        "seeds": rows(kind=np.int32, low=0),
        "loop_of": rows(kind=np.int32, low=-1),
    }
    limits, extents = {"nodes": NODES, "seeds": MOST_SEEDS}, {"loop_of": "nodes"}
    return {
        "node": Padded(
            spaces.Dict({**common, "action_mask": rows()}),
            limits,
            {**extents, "action_mask": "seeds"},
        ),
        "partition": Padded(
            spaces.Dict(
                {
                    **common,
                    "node": spaces.Box(0, NODES, (), np.int32),
                    "action_mask": spaces.Box(0, 1, (2,), np.float32),
                }
            ),
            limits,
            extents,
        ),
    }


class LoopEnv(MultiAgentEnv):
    """Distributes measured loops. Both agents receive the reward at the end.

    The reward is log(stock clang's time / time), limited to -1 to 1.
    """

    def __init__(self, entries: Sequence[Entry], *, seed: int = 0) -> None:
        """Selects the loops with several legal distributions.

        Raises InvalidArgument if there is none.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._loops: list[Choices] = [
            loop
            for entry in entries
            for loop in entry.loops
            if loop.decision == "distribution"
            and len(loop.options) > 1
            and len(loop.features["nodes"]) <= NODES
        ]
        if not self._loops:
            raise InvalidArgument(
                "expected measured loops with several legal distributions, found none;"
                " measure more kernels with `mlbridge search loop-distribution-times`"
            )
        self.possible_agents = ["node", "partition"]
        self.agents = list(self.possible_agents)
        self._padded = observation_spaces()
        self.observation_spaces = dict(self._padded.items())
        self.action_spaces = {
            "node": spaces.Discrete(MOST_SEEDS),
            "partition": spaces.Discrete(2),
        }
        self._draw, _ = seeding.np_random(seed)
        self._loop = self._loops[0]
        self._legal: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self._loop_of: NDArray[np.int32] = np.zeros(0, np.int32)
        self._current = 0
        self._node = 0

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Starts with a random loop."""
        if seed is not None:
            self._draw, _ = seeding.np_random(seed)
        self._loop = self._loops[int(self._draw.integers(len(self._loops)))]
        rows = np.array(self._loop.features["distributions"], np.int32)
        self._legal = rows[self._loop.options]
        self._loop_of = np.full(len(self._loop.features["nodes"]), -1, np.int32)
        self._current, self._node = 0, 0
        return {"node": self._observe("node")}, {"node": {}}

    def _is_legal(self, node: int, is_new: bool) -> bool:
        """Whether `node` may be put in the current loop, or in a new loop if `is_new`.

        This is allowed if a legal distribution does it, has the same assigned seeds,
        and puts every other seed in the same loop or in a later loop. `Placement` in
        compilers/llvm/LoopDistribution/LoopModels.cpp has the same rule.
        """
        seeds = np.array(self._loop.features["seeds"])
        known = self._loop_of[seeds]
        if is_new and (known < 0).all():
            return False
        loop = self._current + is_new
        rows = self._legal[:, seeds]
        fits = np.where(known >= 0, rows == known, rows >= loop).all(axis=1)
        return bool((fits & (self._legal[:, node] == loop)).any())

    def _observe(self, agent: str) -> dict[str, Any]:
        features = self._loop.features
        seeds = np.array(features["seeds"], np.int32)
        found = {
            "nodes": np.array(features["nodes"], np.float32),
            "seeds": seeds,
            "loop_of": self._loop_of.copy(),
        }
        if agent == "node":
            mask = [
                self._loop_of[seed] < 0
                and (self._is_legal(seed, False) or self._is_legal(seed, True))
                for seed in seeds
            ]
        else:
            found["node"] = np.array(self._node, np.int32)
            mask = [self._is_legal(self._node, is_new) for is_new in (False, True)]
        found["action_mask"] = np.array(mask, np.float32)
        return self._padded[agent].pad_tensors(found, 0)

    def step(self, action_dict: dict[Any, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Applies the action of one agent."""
        ((agent, action),) = action_dict.items()
        seeds = self._loop.features["seeds"]
        if agent == "node":
            self._node = int(seeds[min(int(action), len(seeds) - 1)])
            if (self._loop_of >= 0).any():
                return self._continue("partition")
            self._loop_of[self._node] = 0
        else:
            self._current += int(action)
            self._loop_of[self._node] = self._current
        if (self._loop_of[seeds] < 0).any():
            return self._continue("node")
        same = (self._legal[:, seeds] == self._loop_of[seeds]).all(axis=1)
        # An illegal distribution gets the lowest reward.
        ratio = self._loop.ratios[int(same.argmax())] if same.any() else math.e
        return self._end(ratio)

    def _continue(self, agent: str) -> tuple[Any, Any, Any, Any, Any]:
        done = {"__all__": False}
        seen = {agent: self._observe(agent)}
        return seen, dict.fromkeys(seen, 0.0), done, dict(done), {agent: {}}

    def _end(self, ratio: float) -> tuple[Any, Any, Any, Any, Any]:
        reward = min(max(-math.log(ratio), -1.0), 1.0)
        done = {"__all__": True}
        # RLlib requires an observation with each reward, so send a last observation.
        self._node = int(self._loop.features["seeds"][0])
        seen = {agent: self._observe(agent) for agent in self._padded}
        rewards = dict.fromkeys(seen, reward)
        infos = {agent: {"ratio": ratio} for agent in seen}
        return seen, rewards, done, {"__all__": False}, infos
